#include "gather/dataset.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>

#include "gather/machine.hpp"
#include "timing.hpp"

namespace pulse::gather {

constexpr const char* FORMAT = "pulse-dataset 1";
constexpr const char* BEGIN = "samples";

// CRC-32 as in zlib, so that every language has it at hand.
static uint32_t crc32(const std::string& text) {
    uint32_t crc = ~0u;
    for (const char c : text) {
        crc ^= static_cast<unsigned char>(c);
        for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

template <class... Values>
static std::string format(const char* pattern, Values... values) {
    char text[512];
    std::snprintf(text, sizeof text, pattern, values...);
    return text;
}

std::string identity(const Request& request, const Caches& caches) {
    std::string text = "cpu " + cpu_name() + "\n";
    text += format("caches %lld %lld %lld\n", static_cast<long long>(caches.l1), static_cast<long long>(caches.l2),
                   static_cast<long long>(caches.l3));
    text += format("settings rounds %d slice_us %g drift %g\n", request.settings.rounds, request.settings.slice_ns / 1e3,
                   request.settings.drift);
    for (const Isa isa : request.isas) {
        text += std::string("kernels ") + isa_name(isa);
        for (const KernelInfo& kernel : kernels(isa)) text += std::string(" ") + kernel.name;
        text += "\n";
    }
    return text;
}

static std::string limits(Isa isa, const Caches& caches, const Arena& arena) {
    const auto* from = reinterpret_cast<const float*>(arena.data());
    double flops = 0, l2 = 0, l3 = 0, cold = 0;
    for (int i = 0; i < 7; i++) {
        const int64_t near = std::max<int64_t>(caches.l2 / 2, 1 << 17) / 4;
        flops = std::max(flops, peak_flops(isa, 20000));
        l2 = std::max(l2, read_bandwidth(isa, from, near, 20));
        l3 = std::max(l3, read_bandwidth(isa, from, arena.l3_set() / 4, 2));
        cold = std::max(cold, read_bandwidth(isa, from, arena.cold_set() / 4, 1));
    }
    return format("limits %s flops %.4g l2 %.4g l3 %.4g cold %.4g\n", isa_name(isa), flops, l2, l3, cold);
}

std::string header(const Request& request, const Caches& caches, const Arena& arena, int core) {
    const std::time_t now = std::time(nullptr);
    char date[32];
    std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    std::string text = std::string(FORMAT) + "\n" + identity(request, caches);
    text += std::string("date ") + date + "\ntool " + request.tool + "\nsystem " + system_name() + "\n";
    text += format("core %d\n", core);
    for (const Isa isa : request.isas) text += limits(isa, caches, arena);
    return text + BEGIN + "\n";
}

std::string sample_key(Isa isa, const Sample& sample) { return std::string(isa_name(isa)) + " " + to_text(sample); }

std::string sample_line(Isa isa, const Sample& sample, const Timed& timed, double mhz, double celsius) {
    std::string text = sample_key(isa, sample);
    text += format(" | %.5g %.3f %d %.0f %.1f |", timed.reference_ns, timed.drift, timed.repeated, mhz, celsius);
    for (const Timing& t : timed.kernels) text += t.odd > 0 ? format(" %.5g,%.5g", t.odd, t.even) : std::string(" -");
    return text + format(" #%08x\n", crc32(text));
}

static Failure corrupt(const std::string& path, size_t line, const char* found) {
    return {"dataset-corrupt", path + ", line " + std::to_string(line), "a data set as `gather` writes it", found};
}

Found read_dataset(const std::string& path, const std::string& wanted) {
    Found found;
    struct stat facts{};
    if (stat(path.c_str(), &facts) != 0) return found;
    if (!S_ISREG(facts.st_mode)) {
        found.failure = Failure{"output-unwritable", path, "a path that can be written", "a folder or device"};
        return found;
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        found.failure = Failure{"file-unreadable", path, "a data set that can be read", "the system refused"};
        return found;
    }
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (text.compare(0, std::strlen(FORMAT) + 1, std::string(FORMAT) + "\n") != 0) {
        found.failure = corrupt(path, 1, "a file of another kind or version");
        return found;
    }
    const size_t start = std::strlen(FORMAT) + 1;
    if (text.compare(start, wanted.size(), wanted) != 0) {
        found.failure = Failure{"dataset-foreign", path, "samples of this processor, with these kernels and settings",
                                "a data set begun with others"};
        return found;
    }
    size_t line = 1, at = 0;
    bool samples = false;
    for (size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1, line++) {
        const std::string row = text.substr(at, end - at);
        if (!samples) {
            samples = row == BEGIN;
            continue;
        }
        const size_t mark = row.rfind(" #"), bar = row.find(" |");
        if (mark == std::string::npos || bar == std::string::npos || bar > mark ||
            row.substr(mark + 2) != format("%08x", crc32(row.substr(0, mark)))) {
            found.failure = corrupt(path, line, "a line that does not fit its checksum");
            return found;
        }
        found.keys.insert(row.substr(0, bar));
    }
    if (!samples) found.failure = corrupt(path, line, "the end of the file within the header");
    found.good_bytes = static_cast<int64_t>(at);
    return found;
}

static Failure unwritable(const std::string& path, int error) {
    return {"output-unwritable", path, "a path that can be written", std::strerror(error)};
}

std::optional<Failure> write_file(const std::string& path, const std::string& text) {
    const std::string beside = path + ".new";
    const int file = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) return unwritable(path, errno);
    const bool good = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(file) == 0;
    const int error = good ? 0 : errno;
    close(file);
    if (good && rename(beside.c_str(), path.c_str()) == 0) return {};
    const Failure failure = unwritable(path, good ? errno : error);
    unlink(beside.c_str());
    return failure;
}

Appender::Appender(const std::string& path, int64_t keep_bytes) {
    file_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    // The lock is released with the process, however that ends; two runs on one file would mix their lines.
    if (file_ < 0 || flock(file_, LOCK_EX | LOCK_NB) != 0 || ftruncate(file_, keep_bytes) != 0 || lseek(file_, 0, SEEK_END) < 0)
        error_ = errno;
}

Appender::~Appender() {
    if (file_ >= 0) close(file_);
}

bool Appender::append(const std::string& line) {
    if (error_ == 0 && (write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size()) || fdatasync(file_) != 0))
        error_ = errno ? errno : ENOSPC;
    return error_ == 0;
}

}  // namespace pulse::gather
