#include "backend/local/host_signals.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>

#include "backend/local/durable_file.h"

namespace neap::local {
namespace {

constexpr std::size_t file_limit = std::size_t{1} << 20;
constexpr std::size_t processes_max = 4'096;  // of one task that are looked at
constexpr std::size_t threads_max = 4'096;    // of one process
constexpr std::int64_t million = 1'000'000;

std::string text_of(const std::string& path) { return read_bounded(path, file_limit).value_or(""); }

// Words of a line, separated by blanks.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  std::size_t at = 0;
  while (at < line.size()) {
    const std::size_t begin = line.find_first_not_of(" \t", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    out.push_back(line.substr(begin, end - begin));
    at = end;
  }
  return out;
}

std::optional<std::int64_t> number(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return {};
  return value;
}

std::optional<std::int64_t> number_at(const std::vector<std::string_view>& words, std::size_t i) {
  return i < words.size() ? number(words[i]) : std::nullopt;
}

void for_each_line(std::string_view text, const std::function<void(std::string_view)>& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// "key value" or "key: value" lines.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view key) {
  std::optional<std::int64_t> out;
  for_each_line(text, [&](std::string_view line) {
    const auto words = words_of(line);
    if (words.size() < 2) return;
    std::string_view name = words[0];
    if (name.ends_with(':')) name.remove_suffix(1);
    if (name == key) out = number(words[1]);
  });
  return out;
}

// µs in which at least one task stood still for it.
std::optional<std::int64_t> stall_of(const std::string& text) {
  std::optional<std::int64_t> out;
  for_each_line(text, [&](std::string_view line) {
    const auto words = words_of(line);
    if (words.empty() || words[0] != "some" || !words.back().starts_with("total=")) return;
    out = number(words.back().substr(6));
  });
  return out;
}

std::vector<std::string> names_in(const std::string& path, std::size_t most) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(path.c_str()), ::closedir);
  if (!open) return out;
  while (const dirent* entry = ::readdir(open.get())) {
    if (entry->d_name[0] != '.' && out.size() < most) out.emplace_back(entry->d_name);
  }
  return out;
}

// Fields of /proc/PID/stat behind the name, which may hold anything: [0] is the third, the state.
std::vector<std::string_view> stat_fields(std::string_view text) {
  const std::size_t end = text.rfind(')');
  if (end == std::string_view::npos) return {};
  text.remove_prefix(end + 1);
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return words_of(text);
}

void read_threads(const std::string& process, bool delays, ProcessCounters& into) {
  for (const std::string& name : names_in(process + "/task", threads_max)) {
    const auto tid = number(name);
    const std::string times = text_of(process + "/task/" + name + "/schedstat");
    const auto words = words_of(times);
    const auto ran = number_at(words, 0);
    const auto waited = number_at(words, 1);
    if (!tid || !ran || !waited) continue;
    ThreadTimes& thread = into.threads[static_cast<pid_t>(*tid)];
    thread = {*ran, *waited, {}};
    if (!delays) continue;
    const std::string stat = text_of(process + "/task/" + name + "/stat");
    thread.io_ticks = number_at(stat_fields(stat), 39);
  }
}

std::optional<ProcessCounters> read_process(const std::string& process, bool delays) {
  ProcessCounters out;
  const std::string stat = text_of(process + "/stat");
  const auto faults = number_at(stat_fields(stat), 9);
  if (!faults) return {};
  out.major_faults = *faults;
  const std::string memory = text_of(process + "/statm");
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  out.memory_bytes = number_at(words_of(memory), 1).value_or(0) * page;
  const std::string io = text_of(process + "/io");
  const auto in = number_behind(io, "read_bytes");
  const auto written = number_behind(io, "write_bytes");
  if (in && written) out.io_bytes = *in + *written;
  read_threads(process, delays, out);
  return out;
}

void count_group(const Cgroup& group, TaskCounters& into) {
  if (const std::string cpu = group.directory_of("cpu"); !cpu.empty()) {
    const std::string stat = text_of(cpu + "/cpu.stat");
    into.periods = number_behind(stat, "nr_periods");
    into.throttled = number_behind(stat, "nr_throttled");
  }
  if (const std::string memory = group.directory_of("memory"); !memory.empty()) {
    std::string count = text_of(memory + "/memory.failcnt");
    while (!count.empty() && count.back() == '\n') count.pop_back();
    into.limit_hits = number(count);
    if (!into.limit_hits)
      into.limit_hits = number_behind(text_of(memory + "/memory.events"), "max");
  }
}

void read_processors(const std::string& text, MachineCounters& into) {
  for_each_line(text, [&](std::string_view line) {
    const auto words = words_of(line);
    if (words.empty() || !words[0].starts_with("cpu")) return;
    if (words[0] != "cpu") {
      ++into.processors;
      return;
    }
    // user nice system idle iowait irq softirq steal; guests are within user.
    std::int64_t all = 0;
    for (std::size_t i = 1; i <= 8; ++i) all += number_at(words, i).value_or(0);
    const std::int64_t idle = number_at(words, 4).value_or(0) + number_at(words, 5).value_or(0);
    into.cpu_ticks = all;
    into.cpu_busy_ticks = all - idle;
  });
}

bool is_whole_disk(const std::string& sys, std::string_view name) {
  if (name.starts_with("loop") || name.starts_with("ram") || name.starts_with("zram")) return false;
  const std::string path = sys + "/block/" + std::string(name);
  return ::access(path.c_str(), F_OK) == 0;
}

void read_disks(const std::string& text, const std::string& sys, MachineCounters& into) {
  for_each_line(text, [&](std::string_view line) {
    const auto words = words_of(line);
    if (words.size() < 14 || !is_whole_disk(sys, words[2])) return;
    DiskCounters& disk = into.disks[std::string(words[2])];
    disk.number = std::string(words[0]) + ":" + std::string(words[1]);
    disk.operations = number_at(words, 3).value_or(0) + number_at(words, 7).value_or(0);
    disk.operation_ms = number_at(words, 6).value_or(0) + number_at(words, 10).value_or(0);
    disk.busy_ms = number_at(words, 12).value_or(0);
  });
}

void read_links(const std::string& text, const std::string& sys, MachineCounters& into) {
  for_each_line(text, [&](std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const auto name = words_of(line.substr(0, colon));
    const auto words = words_of(line.substr(colon + 1));
    if (name.size() != 1 || name[0] == "lo" || words.size() < 16) return;
    LinkCounters& link = into.links[std::string(name[0])];
    link.sent_bytes = number_at(words, 8).value_or(0);
    link.dropped = number_at(words, 11).value_or(0);
    std::string speed = text_of(sys + "/class/net/" + std::string(name[0]) + "/speed");
    while (!speed.empty() && speed.back() == '\n') speed.pop_back();
    const auto megabits = number(speed);
    if (megabits && *megabits > 0) link.bytes_per_s = *megabits * 125'000;
  });
}

// The line of values behind the line of names.
std::optional<std::int64_t> segments_again(const std::string& text) {
  std::optional<std::int64_t> out;
  std::size_t at = 0;
  bool named = false;
  for_each_line(text, [&](std::string_view line) {
    if (!line.starts_with("Tcp:")) return;
    const auto words = words_of(line);
    if (!named) {
      named = true;
      at = static_cast<std::size_t>(std::ranges::find(words, "RetransSegs") - words.begin());
    } else {
      out = number_at(words, at);
    }
  });
  return out;
}

std::optional<Ppm> part_ppm(std::optional<std::int64_t> part, std::int64_t whole) {
  if (!part || whole <= 0) return {};
  return Ppm(std::clamp<std::int64_t>(
      static_cast<std::int64_t>(static_cast<double>(*part) * 1e6 / static_cast<double>(whole)), 0,
      million));
}

std::optional<std::int64_t> grown(const std::optional<std::int64_t>& before,
                                  const std::optional<std::int64_t>& after) {
  if (!before || !after || *after < *before) return {};
  return *after - *before;
}

std::int64_t per_second(std::int64_t count, Micros length) {
  return static_cast<std::int64_t>(static_cast<double>(count) * 1e6 /
                                   static_cast<double>(length.value));
}

void disks_between(const HostReading& before, const HostReading& after, measure::Machine& out) {
  const std::int64_t length_ms = (after.at - before.at).value / 1'000;
  for (const auto& [name, now] : after.machine.disks) {
    const auto found = before.machine.disks.find(name);
    if (found == before.machine.disks.end()) continue;
    const DiskCounters& was = found->second;
    const auto busy = part_ppm(grown(was.busy_ms, now.busy_ms), length_ms);
    if (!busy || (out.disk_busy && *out.disk_busy >= *busy)) continue;
    out.disk_busy = busy;
    out.disk_await.reset();
    const std::int64_t operations = now.operations - was.operations;
    if (operations > 0) {
      out.disk_await = Micros((now.operation_ms - was.operation_ms) * 1'000 / operations);
    }
  }
}

void links_between(const HostReading& before, const HostReading& after, measure::Machine& out) {
  const Micros length = after.at - before.at;
  std::optional<std::int64_t> lost =
      grown(before.machine.segments_again, after.machine.segments_again);
  for (const auto& [name, now] : after.machine.links) {
    const auto found = before.machine.links.find(name);
    if (found == before.machine.links.end()) continue;
    if (const auto dropped = grown(found->second.dropped, now.dropped)) {
      lost = lost.value_or(0) + *dropped;
    }
    const auto sent = grown(found->second.sent_bytes, now.sent_bytes);
    if (!sent || !now.bytes_per_s) continue;
    const auto use = part_ppm(per_second(*sent, length), *now.bytes_per_s);
    if (use && (!out.network_use || *out.network_use < *use)) out.network_use = use;
  }
  if (lost) out.network_drops_milli_per_s = per_second(*lost * 1'000, length);
}

}  // namespace

HostReading read_host(Time now, const std::vector<TaskGroup>& groups, const std::string& proc,
                      const std::string& sys) {
  HostReading out{.at = now};
  MachineCounters& machine = out.machine;
  read_processors(text_of(proc + "/stat"), machine);
  machine.cpu_stall_us = stall_of(text_of(proc + "/pressure/cpu"));
  machine.memory_stall_us = stall_of(text_of(proc + "/pressure/memory"));
  machine.io_stall_us = stall_of(text_of(proc + "/pressure/io"));
  const std::string memory = text_of(proc + "/meminfo");
  machine.memory_available = part_ppm(number_behind(memory, "MemAvailable"),
                                      number_behind(memory, "MemTotal").value_or(0));
  const std::string pages = text_of(proc + "/vmstat");
  const auto in = number_behind(pages, "pswpin");
  const auto swapped = number_behind(pages, "pswpout");
  if (in && swapped) machine.swapped_pages = *in + *swapped;
  machine.segments_again = segments_again(text_of(proc + "/net/snmp"));
  read_disks(text_of(proc + "/diskstats"), sys, machine);
  read_links(text_of(proc + "/net/dev"), sys, machine);

  const bool delays = text_of(proc + "/sys/kernel/task_delayacct").starts_with('1');
  for (const TaskGroup& one : groups) {
    TaskCounters& task = out.tasks[one.allocation];
    count_group(one.group, task);
    for (const pid_t pid : one.group.processes()) {
      if (task.processes.size() >= processes_max) break;
      auto process = read_process(proc + "/" + std::to_string(pid), delays);
      if (process) task.processes.emplace(pid, std::move(*process));
    }
  }
  return out;
}

measure::Machine machine_between(const HostReading& before, const HostReading& after) {
  measure::Machine out;
  const Micros length = after.at - before.at;
  if (length <= Micros(0)) return out;
  const MachineCounters& a = before.machine;
  const MachineCounters& b = after.machine;
  if (b.processors > 0) out.processors_milli = b.processors * 1'000;
  out.cpu_busy = part_ppm(grown(a.cpu_busy_ticks, b.cpu_busy_ticks),
                          grown(a.cpu_ticks, b.cpu_ticks).value_or(0));
  out.cpu_pressure = part_ppm(grown(a.cpu_stall_us, b.cpu_stall_us), length.value);
  out.memory_pressure = part_ppm(grown(a.memory_stall_us, b.memory_stall_us), length.value);
  out.io_pressure = part_ppm(grown(a.io_stall_us, b.io_stall_us), length.value);
  out.memory_available = b.memory_available;
  if (const auto pages = grown(a.swapped_pages, b.swapped_pages)) {
    out.swapped_pages_per_s = per_second(*pages, length);
  }
  disks_between(before, after, out);
  links_between(before, after, out);
  return out;
}

std::string busiest_disk(const HostReading& before, const HostReading& after) {
  std::string out;
  std::int64_t most = 0;
  for (const auto& [name, now] : after.machine.disks) {
    const auto found = before.machine.disks.find(name);
    if (found == before.machine.disks.end()) continue;
    const std::int64_t busy = now.busy_ms - found->second.busy_ms;
    if (busy <= most) continue;
    most = busy;
    out = now.number;
  }
  return out;
}

measure::Use use_between(const HostReading& before, const HostReading& after,
                         AllocationId allocation) {
  measure::Use out;
  const auto was = before.tasks.find(allocation);
  const auto is = after.tasks.find(allocation);
  const Micros length = after.at - before.at;
  if (was == before.tasks.end() || is == after.tasks.end() || length <= Micros(0)) return out;
  std::int64_t ran = 0;
  std::int64_t waited = 0;
  std::int64_t faults = 0;
  std::int64_t memory = 0;
  std::optional<std::int64_t> io_bytes;
  std::optional<std::int64_t> io_ticks;
  for (const auto& [pid, now] : is->second.processes) {
    memory += now.memory_bytes;
    const auto earlier = was->second.processes.find(pid);
    const ProcessCounters none;
    const ProcessCounters& then = earlier == was->second.processes.end() ? none : earlier->second;
    faults += std::max<std::int64_t>(0, now.major_faults - then.major_faults);
    if (now.io_bytes) {
      io_bytes = io_bytes.value_or(0) +
                 std::max<std::int64_t>(0, *now.io_bytes - then.io_bytes.value_or(0));
    }
    for (const auto& [tid, times] : now.threads) {
      const auto known = then.threads.find(tid);
      const ThreadTimes* begun = known == then.threads.end() ? nullptr : &known->second;
      ran += std::max<std::int64_t>(0, times.ran_ns - (begun ? begun->ran_ns : 0));
      waited += std::max<std::int64_t>(0, times.waited_ns - (begun ? begun->waited_ns : 0));
      if (!times.io_ticks) continue;
      // The thread that waited longest: what others did meanwhile did not help it.
      const std::int64_t ticks_then = begun ? begun->io_ticks.value_or(0) : 0;
      io_ticks = std::max(io_ticks.value_or(0), *times.io_ticks - ticks_then);
    }
  }
  if (is->second.processes.empty()) return out;
  out.cpu_milli = ran / length.value;  // ns / µs = thousandths
  out.memory_bytes = memory;
  out.major_faults_milli_per_s = per_second(faults * 1'000, length);
  // Of one that hardly ran, the part that it waited says nothing.
  if (ran + waited >= 10 * length.value) out.cpu_wait = part_ppm(waited, ran + waited);
  if (io_bytes) out.io_bytes_per_s = per_second(*io_bytes, length);
  if (io_ticks)
    out.io_wait = part_ppm(*io_ticks * (million / ::sysconf(_SC_CLK_TCK)), length.value);
  if (const auto periods = grown(was->second.periods, is->second.periods)) {
    const auto cut = grown(was->second.throttled, is->second.throttled);
    out.cpu_throttled = *periods == 0 ? Ppm(0) : part_ppm(cut, *periods);
  }
  out.memory_limit_hits = grown(was->second.limit_hits, is->second.limit_hits);
  return out;
}

void add_use(measure::Use& into, const measure::Use& more) {
  const auto sum = [](std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b) {
    if (b) a = a.value_or(0) + *b;
  };
  const auto worst = [](std::optional<Ppm>& a, const std::optional<Ppm>& b) {
    if (b && (!a || *a < *b)) a = b;
  };
  sum(into.cpu_milli, more.cpu_milli);
  worst(into.cpu_wait, more.cpu_wait);
  worst(into.cpu_throttled, more.cpu_throttled);
  sum(into.memory_bytes, more.memory_bytes);
  sum(into.major_faults_milli_per_s, more.major_faults_milli_per_s);
  sum(into.memory_limit_hits, more.memory_limit_hits);
  sum(into.io_bytes_per_s, more.io_bytes_per_s);
  worst(into.io_wait, more.io_wait);
  sum(into.sent_bytes_per_s, more.sent_bytes_per_s);
  worst(into.device_use, more.device_use);
}

}  // namespace neap::local
