#include "gather/machine.hpp"

#include <dirent.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace pulse::gather {

static double read_number(const std::string& path) {
    std::ifstream file(path);
    double value = 0;
    return file >> value ? value : 0;
}

// The value of the first line "key : value" of /proc/cpuinfo.
static std::string cpuinfo(const char* key) {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const size_t end = line.find_last_not_of(" \t", colon - 1);
        if (end == std::string::npos || line.compare(0, end + 1, key) != 0) continue;
        const size_t start = line.find_first_not_of(" \t", colon + 1);
        return start == std::string::npos ? "" : line.substr(start);
    }
    return "";
}

std::string cpu_name() {
    if (const std::string name = cpuinfo("model name"); !name.empty() && !cpuinfo("cpu family").empty())
        return name + ", family " + cpuinfo("cpu family") + ", model " + cpuinfo("model");
    if (const std::string part = cpuinfo("CPU part"); !part.empty())
        return "ARM implementer " + cpuinfo("CPU implementer") + ", part " + part + ", variant " + cpuinfo("CPU variant");
    utsname names;
    return uname(&names) == 0 ? std::string("unknown ") + names.machine : "unknown";
}

std::string system_name() {
    utsname names;
    if (uname(&names) != 0) return "unknown";
    const std::string release = names.release;
    return std::string(names.sysname) + " " + release.substr(0, release.find('-'));
}

Caches caches() {
    Caches found;
    for (int i = 0; i < 8; i++) {
        const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
        std::string type;
        std::ifstream(folder + "type") >> type;
        if (type != "Data" && type != "Unified") continue;
        std::string size;
        std::ifstream(folder + "size") >> size;  // "1024K"
        const int64_t unit = size.empty() ? 0 : size.back() == 'K' ? 1024 : size.back() == 'M' ? 1 << 20 : 1;
        const int64_t bytes = std::atoll(size.c_str()) * unit;
        switch (static_cast<int>(read_number(folder + "level"))) {
            case 1: found.l1 = bytes; break;
            case 2: found.l2 = bytes; break;
            case 3: found.l3 = bytes; break;
        }
    }
    return found;
}

int last_core() {
    cpu_set_t set;
    int core = 0;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (int i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, &set)) core = i;
    return core;
}

Pin::Pin(int core) {
    static_assert(sizeof(cpu_set_t) <= sizeof before_, "room for a set of cores");
    cpu_set_t one;
    CPU_ZERO(&one);
    if (core < 0 || core >= CPU_SETSIZE) return;
    CPU_SET(core, &one);
    held_ = sched_getaffinity(0, sizeof(cpu_set_t), reinterpret_cast<cpu_set_t*>(before_)) == 0 &&
            sched_setaffinity(0, sizeof one, &one) == 0;
}

Pin::~Pin() {
    if (held_) sched_setaffinity(0, sizeof(cpu_set_t), reinterpret_cast<cpu_set_t*>(before_));
}

double core_mhz(int core) {
    return read_number("/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cpufreq/scaling_cur_freq") / 1000;
}

double celsius() {
    double hottest = 0;
    if (DIR* folder = opendir("/sys/class/thermal")) {
        while (const dirent* entry = readdir(folder))
            if (std::strncmp(entry->d_name, "thermal_zone", 12) == 0)
                hottest = std::max(hottest, read_number("/sys/class/thermal/" + std::string(entry->d_name) + "/temp") / 1000);
        closedir(folder);
    }
    return hottest;
}

}  // namespace pulse::gather
