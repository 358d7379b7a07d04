#include "simulate/assess/three_numbers.h"

#include <algorithm>
#include <array>

namespace neap::assess {

namespace {

enum class Wanted : std::uint8_t { more, less };

Change change_of(const CompareSpec& spec, std::int64_t before, std::int64_t after, Wanted wanted) {
  const Wide difference = Wide{after} - before;
  const Wide size = difference < 0 ? -difference : difference;
  // Of nothing, anything is a change.
  if (size * all_ppm.value <= Wide{before} * spec.same_within.value) return Change::same;
  return (difference > 0) == (wanted == Wanted::more) ? Change::better : Change::worse;
}

const ServiceLatency* find(const std::vector<ServiceLatency>& services, const std::string& name) {
  const auto found = std::find_if(services.begin(), services.end(),
                                  [&](const ServiceLatency& s) { return s.name == name; });
  return found == services.end() ? nullptr : &*found;
}

Result<void> add_latencies(const CompareSpec& spec, const ThreeNumbers& before,
                           const ThreeNumbers& after, std::vector<Line>& lines) {
  const auto add = [&](std::string name, std::int64_t a, std::int64_t b) {
    lines.push_back({std::move(name), a, b, change_of(spec, a, b, Wanted::less)});
  };
  for (const ServiceLatency& service : before.services) {
    const ServiceLatency* same = find(after.services, service.name);
    if (same == nullptr) {
      return fail(ErrorCode::invalid_argument,
                  "service " + service.name + " has no latency after the change", "services");
    }
    add(service.name + " p95", service.p95_us, same->p95_us);
    add(service.name + " p99", service.p99_us, same->p99_us);
  }
  if (!before.services.empty()) return {};
  if (!before.late_parts || !after.late_parts) {
    return fail(ErrorCode::invalid_argument,
                "expected the latency of services on both sides: the three numbers are judged "
                "together or not at all",
                "services");
  }
  add("requests beyond their objective", *before.late_parts, *after.late_parts);
  return {};
}

Outcome outcome_of(const std::vector<Line>& lines) {
  const Change use = lines.front().change, wait = lines.back().change;
  const bool slower = std::any_of(lines.begin() + 1, lines.end() - 1,
                                  [](const Line& line) { return line.change == Change::worse; });
  const bool faster = std::any_of(lines.begin() + 1, lines.end() - 1,
                                  [](const Line& line) { return line.change == Change::better; });
  if (use == Change::worse) return Outcome::worse;
  if (slower) return use == Change::better ? Outcome::isolation_too_weak : Outcome::worse;
  if (wait == Change::worse) return use == Change::better ? Outcome::waits_longer : Outcome::worse;
  const bool any = use == Change::better || wait == Change::better || faster;
  return any ? Outcome::all_better : Outcome::no_change;
}

std::string slower_ones(const std::vector<Line>& lines) {
  std::string names;
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
    if (lines[i].change != Change::worse) continue;
    names += (names.empty() ? "" : ", ") + lines[i].name;
  }
  return names;
}

std::string verdict_of(const Comparison& comparison) {
  switch (comparison.outcome) {
    case Outcome::all_better:
      return "better: no number is worse";
    case Outcome::isolation_too_weak:
      return "isolation too weak: utilisation is up, and latency is worse (" +
             slower_ones(comparison.lines) + "); this is no gain until latency is what it was";
    case Outcome::waits_longer:
      return "utilisation is up, and tasks wait longer";
    case Outcome::no_change:
      return "no change: the curves of use are not complementary";
    case Outcome::worse:
      break;
  }
  return "worse";
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  constexpr std::array<std::string_view, 5> names{"all_better", "isolation_too_weak",
                                                  "waits_longer", "no_change", "worse"};
  return names[static_cast<std::size_t>(outcome)];
}

std::string_view name_of(Change change) {
  constexpr std::array<std::string_view, 3> names{"better", "same", "worse"};
  return names[static_cast<std::size_t>(change)];
}

Result<Comparison> compare(const CompareSpec& spec, const ThreeNumbers& before,
                           const ThreeNumbers& after) {
  Comparison out;
  out.lines.push_back({"effective utilisation", before.effective_ppm, after.effective_ppm,
                       change_of(spec, before.effective_ppm, after.effective_ppm, Wanted::more)});
  if (auto added = add_latencies(spec, before, after, out.lines); !added) {
    return tl::unexpected(added.error());
  }
  out.lines.push_back({"mean wait", before.mean_wait_us, after.mean_wait_us,
                       change_of(spec, before.mean_wait_us, after.mean_wait_us, Wanted::less)});
  out.outcome = outcome_of(out.lines);
  out.verdict = verdict_of(out);
  return out;
}

}  // namespace neap::assess
