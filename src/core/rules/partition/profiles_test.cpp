// The tables against what is published of them (D8, B1).
#include "core/rules/partition/profiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "core/rules/partition/layout.h"

namespace neap::mig {
namespace {

std::uint32_t bits_of(const DeviceModel& model, std::initializer_list<std::string_view> names) {
  std::uint32_t bits = 0;
  for (const std::string_view name : names) {
    bits |= 1U << static_cast<unsigned>(find_profile(model, name));
  }
  return bits;
}

std::size_t combinations(const DeviceModel& model, const std::vector<std::vector<Place>>& layouts) {
  std::set<std::multiset<std::string>> counts;
  for (const auto& layout : layouts) {
    std::multiset<std::string> names;
    for (const Place& place : layout) {
      names.emplace(model.table[static_cast<std::size_t>(place.profile)].name);
    }
    counts.insert(names);
  }
  return counts.size();
}

// The count of instances in the guide's tables is what the starts allow, alone on the device.
TEST(MigProfiles, CountsAreWhatTheStartsAllow) {
  for (const DeviceModel& model : models()) {
    for (std::int32_t i = 0; i < model.profile_count; ++i) {
      const Profile& profile = model.table[static_cast<std::size_t>(i)];
      std::size_t most = 0;
      for (const auto& layout : legal_layouts(model, 1U << static_cast<unsigned>(i))) {
        most = std::max(most, layout.size());
      }
      EXPECT_EQ(most, static_cast<std::size_t>(profile.count_max))
          << model.name << " " << profile.name;
    }
  }
}

// Names speak of compute slices and of gigabytes; a program finds a little less than that.
TEST(MigProfiles, NamesAgreeWithNumbers) {
  for (const DeviceModel& model : models()) {
    for (const Profile& profile : model.profiles()) {
      const std::string name(profile.name);
      EXPECT_EQ(std::stoi(name), profile.compute_slices) << model.name << " " << name;
      const int gigabytes = std::stoi(name.substr(name.find('.') + 1));
      EXPECT_LE(profile.memory.value, std::int64_t{gigabytes} * 1024) << model.name << " " << name;
      EXPECT_GE(profile.memory.value, std::int64_t{gigabytes} * 1024 * 85 / 100)
          << model.name << " " << name;
      EXPECT_EQ(name.ends_with("+me"), profile.media == Media::extended);
    }
  }
}

// "There are 19 configurations" of an A100: the plain profiles, each layout with its places.
TEST(MigProfiles, AnA100Has19Configurations) {
  for (const std::string_view name : {"A100-40G", "A100-80G"}) {
    const DeviceModel& model = *find_model(name);
    const std::uint32_t plain =
        name == "A100-40G"
            ? bits_of(model, {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"})
            : bits_of(model, {"1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"});
    EXPECT_EQ(full_layouts(model, plain).size(), 19U);
  }
}

// An A30 takes four combinations: 4, 2+2, 2+1+1, 1+1+1+1.
TEST(MigProfiles, AnA30HasFourCombinations) {
  const DeviceModel& model = *find_model("A30-24G");
  const auto full = full_layouts(model, bits_of(model, {"1g.6gb", "2g.12gb", "4g.24gb"}));
  EXPECT_EQ(full.size(), 5U);  // 2+1+1 either way round
  EXPECT_EQ(combinations(model, full), 4U);
}

// Listed by `nvidia-smi mig -lgipp` of an H100: {0-6}:1, {0-6}:1, {0,2,4,6}:2, {0,2,4}:2,
// {0,4}:4, {0}:4, {0}:8.
TEST(MigProfiles, StartsAsTheDriverListsThem) {
  const std::array<std::string, 7> listed = {
      "0,1,2,3,4,5,6:1", "0,1,2,3,4,5,6:1", "0,2,4,6:2", "0,2,4:2", "0,4:4", "0:4", "0:8"};
  for (const DeviceModel& model : models()) {
    if (model.memory_slices != 8) continue;
    for (std::size_t i = 0; i < listed.size(); ++i) {
      std::string text;
      for (std::uint32_t start = 0; start < slices_max; ++start) {
        if (!may_start(model.table[i], start)) continue;
        text += (text.empty() ? "" : ",") + std::to_string(start);
      }
      EXPECT_EQ(text + ":" + std::to_string(model.table[i].memory_slices), listed[i]) << model.name;
    }
  }
}

TEST(MigProfiles, NoLayoutTakesMoreComputeThanThereIs) {
  for (const DeviceModel& given : models()) {
    DeviceModel unlimited = given;
    unlimited.compute_slices = 1000;
    EXPECT_EQ(legal_layouts(given, all_profiles).size(),
              legal_layouts(unlimited, all_profiles).size())
        << given.name;
  }
}

TEST(MigProfiles, KnownByName) {
  EXPECT_EQ(find_model("a100-80g"), find_model("A100-80G"));
  EXPECT_EQ(find_model("A100"), nullptr);
  EXPECT_EQ(find_profile(*find_model("H200-141G"), "3g.71gb"), 4);
  EXPECT_EQ(find_profile(*find_model("H200-141G"), "3g.40gb"), -1);
  EXPECT_TRUE(std::is_sorted(models().begin(), models().end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
}

TEST(MigProfiles, TheSmallestThatServes) {
  const DeviceModel& model = *find_model("A100-80G");
  const auto name = [&](MiB memory, std::int32_t compute) -> std::string {
    const std::int32_t index = smallest_profile(model, {memory, compute});
    return index < 0 ? "none" : std::string(model.table[static_cast<std::size_t>(index)].name);
  };
  EXPECT_EQ(name(MiB(0), 1), "1g.10gb");
  EXPECT_EQ(name(MiB(9728), 1), "1g.10gb");
  EXPECT_EQ(name(MiB(9729), 1), "1g.20gb");
  EXPECT_EQ(name(MiB(9729), 2), "2g.20gb");
  EXPECT_EQ(name(MiB(100), 3), "3g.40gb");
  EXPECT_EQ(name(MiB(100), 4), "4g.40gb");
  EXPECT_EQ(name(MiB(40193), 1), "7g.80gb");
  EXPECT_EQ(name(MiB(80897), 1), "none");
  EXPECT_EQ(name(MiB(1), 8), "none");
}

TEST(MigLayout, SaysWhatIsWrong) {
  const DeviceModel& model = *find_model("A100-80G");
  const auto check = [&](std::vector<Place> places) { return legality(model, places); };
  EXPECT_EQ(check({}), Legality::legal);
  EXPECT_EQ(check({{4, 0}, {4, 4}}), Legality::legal);
  EXPECT_EQ(check({{5, 0}, {4, 4}}), Legality::legal);
  EXPECT_EQ(check({{5, 4}}), Legality::wrong_start);
  EXPECT_EQ(check({{0, 7}}), Legality::wrong_start);
  EXPECT_EQ(check({{4, 0}, {0, 3}}), Legality::overlap);
  EXPECT_EQ(check({{1, 0}, {1, 1}}), Legality::too_many);
  EXPECT_EQ(check({{7, 0}}), Legality::no_such_profile);
  const DeviceModel& a30 = *find_model("A30-24G");
  EXPECT_EQ(legality(a30, std::vector<Place>{{1, 0}, {3, 2}}), Legality::media_exhausted);
}

// One slice on an empty device: at 6 the fewest placements of larger profiles go.
TEST(MigLayout, TheStartThatFragmentsLeast) {
  const DeviceModel& model = *find_model("A100-80G");
  std::map<std::int64_t, std::vector<std::uint32_t>> by_open;
  for (std::uint32_t start = 0; start < 7; ++start) {
    by_open[open_slices(model, slices_of(model.table[0], start))].push_back(start);
  }
  EXPECT_EQ(by_open.rbegin()->second, std::vector<std::uint32_t>{6});
}

}  // namespace
}  // namespace neap::mig
