#include "measure/diagnosis.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <utility>

namespace neap::measure {
namespace {

constexpr std::int64_t whole_ppm = 1'000'000;

double percent(std::int64_t ppm) { return static_cast<double>(ppm) / 10'000; }
double milli(std::int64_t value) { return static_cast<double>(value) / 1'000; }

// What speaks for one resource. Each of the three is a known yes, a known no, or not known.
struct Case {
  Resource resource = Resource::none;
  std::optional<bool> suffers{};
  bool suffers_badly = false;
  std::optional<bool> saturated{};
  std::optional<bool> taken{};  // a neighbour takes a part that matters
  std::string neighbour{};
  std::vector<Evidence> evidence{};
  std::vector<std::string> unknown{};
};

class Judge {
 public:
  Judge(const Signals& signals, const std::optional<Alone>& alone, const DiagnosisLimits& limits)
      : in_(signals), alone_(alone), limits_(limits) {}

  [[nodiscard]] Case cpu() const {
    Case out{.resource = Resource::cpu};
    over(out, out.suffers, "waits for a processor", in_.use.cpu_wait, limits_.cpu_wait);
    out.suffers_badly = above(in_.use.cpu_wait, limits_.cpu_wait_blind);
    over(out, out.saturated, "processors busy", in_.machine.cpu_busy, limits_.cpu_busy);
    over(out, out.saturated, "CPU pressure", in_.machine.cpu_pressure, 2 * limits_.cpu_wait);
    shares(out, "processors", &Use::cpu_milli, "cores", 1'000, in_.machine.processors_milli);
    return out;
  }

  [[nodiscard]] Case memory() const {
    Case out{.resource = Resource::memory};
    number(out, out.suffers, "major page faults", "/s", in_.use.major_faults_milli_per_s,
           limits_.faults_milli_per_s);
    over(out, out.saturated, "memory pressure", in_.machine.memory_pressure,
         limits_.memory_pressure);
    number(out, out.saturated, "pages swapped", "/s",
           scaled(in_.machine.swapped_pages_per_s, 1'000), limits_.faults_milli_per_s);
    if (const auto left = in_.machine.memory_available) {
      const bool low = left->value <= limits_.memory_available;
      out.saturated = out.saturated.value_or(false) || low;
      if (low) {
        out.evidence.push_back(
            {"memory left", "%", percent(left->value), percent(limits_.memory_available)});
      }
    } else {
      out.unknown.emplace_back("memory left");
    }
    out.suffers_badly = out.suffers.value_or(false) && out.saturated.value_or(false);
    shares(out, "memory", &Use::memory_bytes, "MB", 1'000'000, {});
    return out;
  }

  [[nodiscard]] Case storage() const {
    Case out{.resource = Resource::storage};
    over(out, out.suffers, "waits for storage", in_.use.io_wait, limits_.io_wait);
    over(out, out.saturated, "disk busy", in_.machine.disk_busy, limits_.disk_busy);
    over(out, out.saturated, "I/O pressure", in_.machine.io_pressure, limits_.io_pressure);
    const auto before = alone_ ? alone_->machine.disk_await : std::nullopt;
    if (in_.machine.disk_await && before && *before > Micros(0)) {
      number(out, out.suffers, "time of a disk operation", "x alone",
             in_.machine.disk_await->value * 1'000 / before->value, limits_.disk_await_times_milli);
    }
    // Storage saturated while compute idles (S10).
    out.suffers_badly = above(in_.machine.io_pressure, limits_.io_pressure_blind) &&
                        above(in_.machine.disk_busy, limits_.disk_busy) &&
                        !above(in_.machine.cpu_busy, limits_.cpu_busy);
    shares(out, "storage", &Use::io_bytes_per_s, "MB/s", 1'000'000, {});
    return out;
  }

  [[nodiscard]] Case network() const {
    Case out{.resource = Resource::network};
    number(out, out.suffers, "packets dropped", "/s", in_.machine.network_drops_milli_per_s,
           limits_.drops_milli_per_s);
    over(out, out.saturated, "link used", in_.machine.network_use, limits_.network_use);
    shares(out, "network", &Use::sent_bytes_per_s, "MB/s", 1'000'000, {});
    out.suffers_badly = out.suffers.value_or(false) && out.saturated.value_or(false);
    return out;
  }

  [[nodiscard]] Case device_memory() const {
    Case out{.resource = Resource::device_memory};
    over(out, out.saturated, "device memory used", in_.machine.device_memory,
         limits_.device_memory);
    out.taken = in_.neighbours.empty() ? std::optional<bool>(false) : out.saturated;
    return out;
  }

  [[nodiscard]] Case device_compute() const {
    Case out{.resource = Resource::device_compute};
    over(out, out.saturated, "device busy", in_.machine.device_compute, limits_.device_compute);
    shares(out, "device", &Use::device_use, "%", 10'000, {});
    return out;
  }

  // Slow though nobody takes anything: by what it is asked, or by the limit that it has itself.
  [[nodiscard]] Case own_load() const {
    Case out{.resource = Resource::own_load};
    over(out, out.suffers, "held back by its own quota", in_.use.cpu_throttled, limits_.throttled);
    if (const auto hits = in_.use.memory_limit_hits; hits && *hits > 0) {
      out.suffers = true;
      out.evidence.push_back({"hits of its own memory limit", "", double(*hits), 1});
    }
    const auto before = alone_ ? alone_->speed.requests_milli_per_s : std::nullopt;
    if (in_.speed.requests_milli_per_s && before && *before > 0) {
      number(out, out.suffers, "requests", "x alone",
             *in_.speed.requests_milli_per_s * 1'000 / *before, limits_.slow_milli);
    }
    return out;
  }

 private:
  template <class T>
  static bool above(const std::optional<T>& value, std::int64_t limit) {
    return value && value->value >= limit;
  }
  static std::optional<std::int64_t> scaled(std::optional<std::int64_t> value, std::int64_t times) {
    if (value) *value *= times;
    return value;
  }

  static void over(Case& out, std::optional<bool>& verdict, const char* signal,
                   const std::optional<Ppm>& value, std::int64_t limit) {
    if (!value) {
      out.unknown.emplace_back(signal);
      return;
    }
    const bool is = value->value >= limit;
    verdict = verdict.value_or(false) || is;
    if (is) out.evidence.push_back({signal, "%", percent(value->value), percent(limit)});
  }

  static void number(Case& out, std::optional<bool>& verdict, const char* signal, const char* unit,
                     std::optional<std::int64_t> value_milli, std::int64_t limit_milli) {
    if (!value_milli) {
      out.unknown.emplace_back(signal);
      return;
    }
    const bool is = *value_milli >= limit_milli;
    verdict = verdict.value_or(false) || is;
    if (is) out.evidence.push_back({signal, unit, milli(*value_milli), milli(limit_milli)});
  }

  static std::int64_t plain(std::int64_t value) { return value; }
  static std::int64_t plain(Ppm value) { return value.value; }

  // Do neighbours together take a part that matters, of `whole` or else of what all take?
  template <class T>
  void shares(Case& out, const char* what, std::optional<T> Use::*member, const char* unit,
              double divisor, std::optional<std::int64_t> whole) const {
    std::int64_t sum = in_.use.*member ? plain(*(in_.use.*member)) : 0;
    std::int64_t most = 0;
    std::int64_t theirs = 0;
    int known = 0;
    for (const Neighbour& one : in_.neighbours) {
      const auto& value = one.use.*member;
      if (!value) continue;
      ++known;
      theirs += plain(*value);
      if (plain(*value) > most) {
        most = plain(*value);
        out.neighbour = one.name;
      }
    }
    if (in_.neighbours.empty()) {
      out.taken = false;
      return;
    }
    sum += theirs;
    if (known == 0) {
      out.unknown.push_back(std::string("what neighbours take of ") + what);
      return;
    }
    const std::int64_t of = whole && *whole > 0 ? *whole : sum;
    // Compared as fractions: amounts of bytes times a million would overflow.
    const double part = of == 0 ? 0 : static_cast<double>(theirs) / static_cast<double>(of);
    const double limit = static_cast<double>(limits_.neighbour_part) / whole_ppm;
    out.taken = part >= limit;
    if (*out.taken) {
      const std::string who = known == 1 ? out.neighbour + " takes" : "neighbours take";
      out.evidence.push_back({who, unit, static_cast<double>(theirs) / divisor,
                              static_cast<double>(of) * limit / divisor});
    }
  }

  const Signals& in_;
  const std::optional<Alone>& alone_;
  const DiagnosisLimits& limits_;
};

// How much speaks for it: 0 nothing. Suffering of the workload itself weighs most.
std::int64_t score_of(const Case& one, std::optional<bool> slow) {
  if (slow && !*slow) return 0;
  const bool suffers = one.suffers.value_or(false);
  const bool saturated = one.saturated.value_or(false);
  if (one.resource == Resource::own_load) {
    return slow.value_or(false) && suffers ? 450'000 : 0;
  }
  if (!suffers && !saturated) return 0;
  if (one.taken && !*one.taken) return 0;  // nobody to fight with
  if (!slow && !one.suffers_badly) return 0;
  std::int64_t score = 0;
  if (slow.value_or(false)) score += 300'000;
  if (suffers) score += 300'000;
  if (one.suffers_badly) score += 150'000;
  if (saturated) score += 150'000;
  if (one.taken.value_or(false)) score += 50'000;
  return std::min<std::int64_t>(score, 990'000);
}

std::optional<std::int64_t> ratio(const std::optional<Micros>& now,
                                  const std::optional<Micros>& before) {
  if (!now || !before || *before <= Micros(0)) return {};
  return now->value * 1'000 / before->value;
}

void add_speed(const Signals& signals, const std::optional<Alone>& alone, Diagnosis& out) {
  const auto add = [&](const char* name, const std::optional<Micros>& now,
                       const std::optional<Micros>& before) {
    if (!now) return;
    const double was = before ? milli(before->value) : 0;
    out.evidence.push_back({name, "ms", milli(now->value), was});
  };
  const Speed none;
  const Speed& before = alone ? alone->speed : none;
  add("inter-token p50", signals.speed.inter_token_p50, before.inter_token_p50);
  add("first byte p99", signals.speed.first_byte_p99, before.first_byte_p99);
  add("step", signals.speed.step, before.step);
}

}  // namespace

std::string_view name_of(Resource resource) {
  constexpr std::array<std::string_view, 8> names{
      "none", "cpu", "memory", "storage", "network", "device memory", "device compute", "own load"};
  return names.at(static_cast<std::size_t>(resource));
}

std::optional<std::int64_t> slowdown_milli(const Speed& speed, const std::optional<Alone>& alone) {
  std::optional<std::int64_t> worst{};
  const auto take = [&](std::optional<std::int64_t> one) {
    if (one) worst = std::max(worst.value_or(0), *one);
  };
  if (alone) {
    take(ratio(speed.inter_token_p50, alone->speed.inter_token_p50));
    // The times to the first byte scatter more than the gaps between tokens: only the median.
    take(ratio(speed.first_byte_p50, alone->speed.first_byte_p50));
    take(ratio(speed.step, alone->speed.step));
  }
  if (speed.first_byte_slo) {
    // A promise that is kept says nothing of how slow: only one that is broken does.
    const auto late = ratio(speed.first_byte_p99, speed.first_byte_slo);
    if (late && (*late > 1'000 || !worst)) take(late);
  }
  return worst;
}

Diagnosis diagnose(const Signals& signals, const std::optional<Alone>& alone,
                   const DiagnosisLimits& limits) {
  Diagnosis out;
  out.slowdown_milli = slowdown_milli(signals.speed, alone);
  std::optional<bool> slow{};
  if (out.slowdown_milli) {
    const bool broken = signals.speed.first_byte_slo && signals.speed.first_byte_p99 &&
                        *signals.speed.first_byte_p99 > *signals.speed.first_byte_slo;
    // A kept promise alone, without a baseline, leaves open how fast it could be; it is enough
    // for quiet: nobody was hurt.
    slow = broken || (alone && *out.slowdown_milli >= limits.slow_milli);
  }
  const Judge judge(signals, alone, limits);
  // In this order where two are equal: what others follow from comes first.
  std::vector<Case> cases{judge.memory(),  judge.cpu(),           judge.storage(),
                          judge.network(), judge.device_memory(), judge.device_compute(),
                          judge.own_load()};
  Case* best = nullptr;
  std::int64_t most = 0;
  for (Case& one : cases) {
    const std::int64_t score = score_of(one, slow);
    if (score > most) {
      most = score;
      best = &one;
    }
    out.unknown.insert(out.unknown.end(), one.unknown.begin(), one.unknown.end());
  }
  add_speed(signals, alone, out);
  if (best == nullptr) {
    if (slow.value_or(false)) {
      // Slow and no sign of anybody else: its own doing as far as can be told.
      out.resource = Resource::own_load;
      out.confidence = Ppm(200'000);
      return out;
    }
    out.confidence = Ppm(slow ? 900'000 : 400'000);
    return out;
  }
  out.resource = best->resource;
  out.confidence = Ppm(most);
  out.neighbour = best->neighbour;
  out.evidence.insert(out.evidence.end(), best->evidence.begin(), best->evidence.end());
  return out;
}

std::string text_of(const std::vector<Evidence>& evidence) {
  std::string out{};
  for (const Evidence& one : evidence) {
    std::array<char, 96> number{};
    std::snprintf(number.data(), number.size(), " %.1f%s%s", one.value, one.unit.empty() ? "" : " ",
                  one.unit.c_str());
    out += (out.empty() ? "" : ", ") + one.signal + number.data();
    if (one.limit <= 0) continue;
    const bool is_time = one.unit == "ms";
    std::snprintf(number.data(), number.size(), " (%s %.1f)", is_time ? "alone" : "from",
                  one.limit);
    out += number.data();
  }
  return out;
}

const Diagnosis& SteadyDiagnosis::add(Diagnosis next) {
  same_ = next.resource == last_.resource ? same_ + 1 : 1;
  last_ = std::move(next);
  if (same_ >= windows_ || last_.resource == held_.resource) held_ = last_;
  return held_;
}

}  // namespace neap::measure
