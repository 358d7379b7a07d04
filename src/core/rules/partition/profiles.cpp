#include "core/rules/partition/profiles.h"

#include <algorithm>
#include <tuple>

// Names, slices and counts: "Supported MIG Profiles" of NVIDIA's MIG User Guide. Starts: listings
// of `nvidia-smi mig -lgipp` that owners of such devices have published. Memory: listings of
// `nvidia-smi mig -lgip`, the smallest where drivers differ. docs/operators/mig.md says per model
// what was checked against what, and which numbers were derived.
namespace neap::mig {

namespace {

constexpr std::uint32_t any_of_seven = 0b0111'1111;
constexpr std::uint32_t even_of_eight = 0b0101'0101;  // 0, 2, 4, 6
constexpr std::uint32_t even_of_six = 0b0001'0101;    // 0, 2, 4
constexpr std::uint32_t halves = 0b0001'0001;         // 0, 4
constexpr std::uint32_t first = 0b0000'0001;

// Memory of an instance of one, two, four and all eight slices.
struct Memory {
  MiB one;
  MiB two;
  MiB four;
  MiB all;
};

// One slice, with media, one of double memory, two, three, four, seven.
using Names = std::array<std::string_view, 7>;

// All of A100, H100, H200 and B200 are cut alike: eight memory and seven compute slices.
constexpr DeviceModel seven_slices(std::string_view name, const Names& names, Memory memory) {
  DeviceModel model;
  model.name = name;
  model.compute_slices = 7;
  model.memory_slices = 8;
  model.media_extensions = 1;
  model.profile_count = 7;
  model.table = {{
      {names[0], 1, 1, memory.one, any_of_seven, 7, Media::plain},
      {names[1], 1, 1, memory.one, any_of_seven, 1, Media::extended},
      {names[2], 1, 2, memory.two, even_of_eight, 4, Media::plain},
      {names[3], 2, 2, memory.two, even_of_six, 3, Media::plain},
      {names[4], 3, 4, memory.four, halves, 2, Media::plain},
      {names[5], 4, 4, memory.four, first, 1, Media::plain},
      {names[6], 7, 8, memory.all, first, 1, Media::plain},
  }};
  return model;
}

constexpr DeviceModel a30() {
  DeviceModel model;
  model.name = "A30-24G";
  model.compute_slices = 4;
  model.memory_slices = 4;
  model.media_extensions = 1;
  model.profile_count = 5;
  model.table = {{
      {"1g.6gb", 1, 1, MiB(5836), 0b1111, 4, Media::plain},
      {"1g.6gb+me", 1, 1, MiB(5836), 0b1111, 1, Media::extended},
      {"2g.12gb", 2, 2, MiB(11672), 0b0101, 2, Media::plain},
      {"2g.12gb+me", 2, 2, MiB(11672), 0b0101, 1, Media::extended},
      {"4g.24gb", 4, 4, MiB(23344), 0b0001, 1, Media::plain},
  }};
  return model;
}

constexpr std::array<DeviceModel, 8> table = {
    seven_slices("A100-40G",
                 {"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"},
                 {MiB(4864), MiB(9856), MiB(19968), MiB(40192)}),
    seven_slices("A100-80G",
                 {"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
                 {MiB(9728), MiB(19968), MiB(40192), MiB(80896)}),
    a30(),
    seven_slices("B200-180G",
                 {"1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"},
                 {MiB(20992), MiB(45312), MiB(90624), MiB(181248)}),
    seven_slices("H100-80G",
                 {"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
                 {MiB(9984), MiB(20096), MiB(40448), MiB(81152)}),
    seven_slices("H100-94G",
                 {"1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"},
                 {MiB(11008), MiB(22144), MiB(47488), MiB(94976)}),
    seven_slices("H100-96G",
                 {"1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"},
                 {MiB(11264), MiB(23552), MiB(47616), MiB(95232)}),
    seven_slices("H200-141G",
                 {"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"},
                 {MiB(16384), MiB(33024), MiB(71168), MiB(143104)}),
};

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

}  // namespace

std::span<const DeviceModel> models() { return table; }

const DeviceModel* find_model(std::string_view name) {
  const auto* found = std::find_if(table.begin(), table.end(), [&](const DeviceModel& model) {
    return std::equal(model.name.begin(), model.name.end(), name.begin(), name.end(),
                      [](char a, char b) { return lower(a) == lower(b); });
  });
  return found == table.end() ? nullptr : found;
}

std::int32_t find_profile(const DeviceModel& model, std::string_view name) {
  const auto profiles = model.profiles();
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    if (profiles[i].name == name) return static_cast<std::int32_t>(i);
  }
  return -1;
}

std::int32_t smallest_profile(const DeviceModel& model, const Need& need) {
  const auto size = [](const Profile& p) {
    return std::tuple(p.memory_slices, p.compute_slices, p.media);
  };
  const auto profiles = model.profiles();
  std::int32_t best = -1;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const Profile& profile = profiles[i];
    if (profile.memory < need.memory || profile.compute_slices < need.compute_slices) continue;
    if (best < 0 || size(profile) < size(profiles[static_cast<std::size_t>(best)])) {
      best = static_cast<std::int32_t>(i);
    }
  }
  return best;
}

}  // namespace neap::mig
