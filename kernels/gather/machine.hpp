// What the machine says about itself: processor, caches, clock, temperature; and holding on to one core.
#pragma once
#include <string>

#include "gather/arena.hpp"

namespace pulse::gather {

// The processor as tables and hints name it: model name and what tells revisions apart, e.g. "AMD EPYC, family 25, model 17".
std::string cpu_name();
std::string system_name();  // kernel name and version
Caches caches();

int last_core();  // the last core this thread may use: the first ones serve interrupts

// Keeps the calling thread on one core while it lives. `held()` is false where the system refused.
class Pin {
  public:
    explicit Pin(int core);
    ~Pin();
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    bool held() const { return held_; }

  private:
    alignas(8) unsigned char before_[128];
    bool held_ = false;
};

double core_mhz(int core);  // as the system shows it, 0 where it does not
double celsius();           // of the hottest sensor, 0 where none is shown

}  // namespace pulse::gather
