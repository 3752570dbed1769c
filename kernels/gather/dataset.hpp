// The data set as a file: a header that says how it was made, then a line per sample with a checksum.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "gather/run.hpp"

namespace pulse::gather {

// What must be equal for samples to belong together: processor, settings, kernels.
std::string identity(const Request& request, const Caches& caches);

// identity() and, beside it, when, by what and at which limits of the machine the set was begun.
std::string header(const Request& request, const Caches& caches, const Arena& arena, int core);

std::string sample_line(Isa isa, const Sample& sample, const Timed& timed, double mhz, double celsius);

struct Found {
    std::set<std::string> keys;  // "v4 64 384 1 frame none l3" of each sample that is there
    int64_t good_bytes = 0;      // up to the end of the last whole line; 0 where there is no file
    std::optional<Failure> failure;
};
Found read_dataset(const std::string& path, const std::string& identity);

std::string sample_key(Isa isa, const Sample& sample);
std::optional<Failure> write_file(const std::string& path, const std::string& text);

// A file open for appending lines, each with one write and then synced.
class Appender {
  public:
    Appender(const std::string& path, int64_t keep_bytes);
    ~Appender();
    Appender(const Appender&) = delete;
    Appender& operator=(const Appender&) = delete;
    bool append(const std::string& line);
    int error() const { return error_; }

  private:
    int file_ = -1, error_ = 0;
};

}  // namespace pulse::gather
