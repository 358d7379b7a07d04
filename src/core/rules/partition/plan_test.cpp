// Plans as tables: devices as they are, what is wanted, the steps and answers expected (D8, B1).
#include "core/rules/partition/plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace neap::mig {
namespace {

const DeviceModel& a100() { return *find_model("A100-80G"); }

// "3g.40gb@4 1g.10gb@0!" where ! is busy.
Device device(std::string_view layout, const DeviceModel& model = a100()) {
  Device device{&model, {}};
  while (!layout.empty()) {
    std::string_view word = layout.substr(0, layout.find(' '));
    layout.remove_prefix(std::min(layout.size(), word.size() + 1));
    Instance instance;
    if (word.ends_with('!')) {
      instance.use = Use::busy;
      word.remove_suffix(1);
    }
    const auto at = word.find('@');
    instance.place = {find_profile(model, word.substr(0, at)),
                      static_cast<std::uint32_t>(word.back() - '0')};
    device.instances.push_back(instance);
  }
  return device;
}

std::string text_of(const Plan& plan, const std::vector<Device>& devices) {
  std::string text;
  for (const Step& step : plan.steps) {
    const auto& profile =
        devices[step.device].model->table[static_cast<std::size_t>(step.place.profile)];
    text += (step.kind == StepKind::create ? "+" : "-") + std::to_string(step.device) + ":" +
            std::string(profile.name) + "@" + std::to_string(step.place.start) + " ";
  }
  return text;
}

std::string steps(const std::vector<Device>& devices, const std::vector<Want>& wants) {
  const auto plan = make_plan(devices, wants);
  return plan ? text_of(*plan, devices) : to_string(plan.error());
}

Want want(std::string profile, std::int64_t count, std::int64_t weight = 1) {
  return {std::move(profile), {}, count, weight};
}

TEST(MigPlan, CreatesWhereLeastIsLost) {
  EXPECT_EQ(steps({device("")}, {want("1g.10gb", 1)}), "+0:1g.10gb@6 ");
  EXPECT_EQ(steps({device("")}, {want("3g.40gb", 1)}), "+0:3g.40gb@4 ");
  // The driver alone would put the first slice at 0, and 4g would no longer fit.
  EXPECT_EQ(steps({device("")}, {want("1g.10gb", 2), want("4g.40gb", 1)}),
            "+0:4g.40gb@0 +0:1g.10gb@4 +0:1g.10gb@5 ");
}

TEST(MigPlan, UsesWhatIsThere) {
  const std::vector<Device> devices = {device(""), device("3g.40gb@0 2g.20gb@4")};
  const Plan plan = *make_plan(devices, std::vector{want("2g.20gb", 1)});
  EXPECT_TRUE(plan.steps.empty());
  ASSERT_EQ(plan.serves.size(), 1U);
  EXPECT_EQ(plan.serves[0].device, 1U);
  EXPECT_EQ(plan.serves[0].place, (Place{3, 4}));
}

TEST(MigPlan, DestroysOnlyWhatIsInTheWay) {
  EXPECT_EQ(steps({device("1g.10gb@0 1g.10gb@5 1g.10gb@6")}, {want("4g.40gb", 1)}),
            "-0:1g.10gb@0 +0:4g.40gb@0 ");
}

TEST(MigPlan, LeavesABusyDeviceAsItIs) {
  const std::vector<Device> devices = {device("1g.10gb@0! 1g.10gb@1")};
  EXPECT_EQ(steps(devices, {want("3g.40gb", 1)}), "");
  const Plan plan = *make_plan(devices, std::vector{want("3g.40gb", 1), want("1g.10gb", 2)});
  EXPECT_EQ(plan.answers[0].served, 0);
  EXPECT_EQ(plan.answers[0].shortage, Shortage::held_by_busy);
  EXPECT_EQ(plan.answers[1].served, 1);
  EXPECT_EQ(plan.answers[1].shortage, Shortage::held_by_busy);
  EXPECT_EQ(plan.answers[1].at_most, 1);
}

TEST(MigPlan, TheHeavierIsServedFirst) {
  const std::vector<Device> devices = {device("")};
  const Plan plan = *make_plan(devices, std::vector{want("1g.10gb", 7, 1), want("7g.80gb", 1, 8)});
  EXPECT_EQ(text_of(plan, devices), "+0:7g.80gb@0 ");
  EXPECT_EQ(plan.answers[0].shortage, Shortage::outweighed);
  const Plan other = *make_plan(devices, std::vector{want("1g.10gb", 7, 1), want("7g.80gb", 1, 6)});
  EXPECT_EQ(other.answers[0].served, 7);
  // Of wants for one profile the heavier one has it.
  const Plan same = *make_plan(std::vector{device("")},
                               std::vector{want("4g.40gb", 1, 1), want("4g.40gb", 1, 2)});
  EXPECT_EQ(same.answers[0].served, 0);
  EXPECT_EQ(same.answers[1].served, 1);
}

TEST(MigPlan, KeepsDevicesWhole) {
  const std::vector<Device> devices = {device(""), device(""), device("")};
  EXPECT_EQ(steps(devices, {want("3g.40gb", 1), want("2g.20gb", 2)}),
            "+0:2g.20gb@0 +0:2g.20gb@2 +0:3g.40gb@4 ");
}

TEST(MigPlan, NeedsByMemoryAndCompute) {
  const std::vector<Device> devices = {device("", *find_model("A100-40G")),
                                       device("", *find_model("H100-80G"))};
  const std::vector<Want> wants = {{"", {MiB(16 * 1024), 2}, 2, 1}};
  EXPECT_EQ(steps(devices, wants), "+1:2g.20gb@0 +1:2g.20gb@2 ");
  const std::vector<Want> large = {{"", {MiB(200 * 1024), 1}, 1, 1}};
  EXPECT_EQ(make_plan(devices, large)->answers[0].shortage, Shortage::no_profile);
  const std::vector<Want> many = {{"", {MiB(16 * 1024), 2}, 6, 1}};
  EXPECT_EQ(make_plan(devices, many)->answers[0].shortage, Shortage::too_many);
}

TEST(MigPlan, OneInstanceHasTheMediaEngines) {
  const Plan plan = *make_plan(std::vector{device("")}, std::vector{want("1g.10gb+me", 2)});
  EXPECT_EQ(plan.answers[0].served, 1);
  EXPECT_EQ(plan.answers[0].shortage, Shortage::too_many);
}

TEST(MigPlan, StepsAreRefusedOnceTheDeviceIsBusy) {
  std::vector<Device> devices = {device("1g.10gb@0")};
  const Plan plan = *make_plan(devices, std::vector{want("4g.40gb", 1)});
  EXPECT_TRUE(holds(plan, review(plan, devices)));
  devices[0].instances[0].use = Use::busy;
  const Review review = mig::review(plan, devices);
  EXPECT_FALSE(holds(plan, review));
  EXPECT_EQ(review.refused, 0U);
  EXPECT_EQ(review.why, StepState::device_busy);
  EXPECT_EQ(state_of({StepKind::create, 5, {0, 0}}, devices), StepState::no_such_device);
  // Another program was faster.
  devices = {device("1g.10gb@0 3g.40gb@4")};
  const Plan second = *make_plan(devices, std::vector{want("3g.40gb", 1), want("4g.40gb", 1)});
  devices = {device("1g.10gb@0 1g.10gb@3 3g.40gb@4")};
  EXPECT_EQ(mig::review(second, devices).why, StepState::no_room);
  devices = {device("1g.10gb@0")};
  EXPECT_EQ(mig::review(second, devices).lost, 1U);
}

TEST(MigPlan, RefusesWhatCannotBe) {
  const auto error = [](const std::vector<Device>& devices, const std::vector<Want>& wants) {
    const auto plan = make_plan(devices, wants);
    return plan ? "none" : to_string(plan.error());
  };
  EXPECT_EQ(error({device("4g.40gb@0 1g.10gb@3")}, {}),
            "devices[0].instances[1]: overlaps another instance");
  EXPECT_EQ(error({device("")}, {want("1g.10gb", 0)}),
            "wants[0].count: is 0; expected 1 to 1000000");
  EXPECT_EQ(error({device("")}, {want("1g.10gb", 1, 0)}),
            "wants[0].weight: is 0; expected 1 to 1000000");
  EXPECT_EQ(error({device("")}, {want("", 1)}),
            "wants[0].profile: expected a profile, or memory and compute");
  EXPECT_EQ(error({device("")}, std::vector<Want>(33, want("1g.10gb", 1))),
            "wants: 33 wants; at most 32");
  EXPECT_EQ(error({}, {want("1g.10gb", 1)}), "none");
  EXPECT_EQ(error(std::vector<Device>(100'001, device("")), {}),
            "devices: 100001 devices; at most 100000");
}

TEST(MigPlan, TheLargestNumbersDoNotOverflow) {
  std::vector<Device> devices(2000, device(""));
  std::vector<Want> wants;
  for (const Profile& profile : a100().profiles()) {
    wants.push_back(want(std::string(profile.name), count_max, weight_max));
  }
  while (wants.size() < wants_max) wants.push_back(wants[wants.size() % 7]);
  const auto plan = make_plan(devices, wants);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->score.worth, std::int64_t{2000} * 7 * weight_max);
  EXPECT_LE(plan->score.worth, plan->worth_bound);
}

TEST(MigPlan, SaysTheSameEachTime) {
  const std::vector<Device> devices(12, device("1g.10gb@0"));
  const std::vector<Want> wants = {want("3g.40gb", 9, 3), want("1g.10gb", 11)};
  const Plan first = *make_plan(devices, wants);
  const Plan second = *make_plan(devices, wants);
  EXPECT_EQ(first.steps, second.steps);
  EXPECT_EQ(first.method, Method::exact);
}

}  // namespace
}  // namespace neap::mig
