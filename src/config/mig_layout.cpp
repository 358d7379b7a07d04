#include "config/mig_layout.h"

#include <algorithm>
#include <utility>

#include "config/document.h"
#include "config/fields.h"

namespace neap::config {

namespace {

constexpr std::string_view expected_instance = "; expected a profile and its start, as 3g.40gb@4";

std::string known_models() {
  std::string text;
  for (const mig::DeviceModel& model : mig::models()) {
    text += (text.empty() ? "" : ", ") + std::string(model.name);
  }
  return text;
}

std::string known_profiles(const mig::DeviceModel& model) {
  std::string text;
  for (const mig::Profile& profile : model.profiles()) {
    text += (text.empty() ? "" : ", ") + std::string(profile.name);
  }
  return text;
}

Parsed<const mig::DeviceModel*> parse_model(std::string_view text) {
  const mig::DeviceModel* model = mig::find_model(text);
  if (model != nullptr) return model;
  return tl::unexpected(in_quotes(text) + " is no model with a table; expected one of " +
                        known_models());
}

std::string starts_of(const mig::Profile& profile) {
  std::string text;
  for (std::uint32_t start = 0; start < mig::slices_max; ++start) {
    if (!mig::may_start(profile, start)) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(start);
  }
  return text;
}

Parsed<mig::Place> parse_place(const mig::DeviceModel& model, std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) {
    return tl::unexpected(in_quotes(text) + " has no start" + std::string(expected_instance));
  }
  const std::int32_t index = mig::find_profile(model, text.substr(0, at));
  if (index < 0) {
    return tl::unexpected(in_quotes(text.substr(0, at)) + " is no profile of " +
                          std::string(model.name) + "; expected one of " + known_profiles(model));
  }
  const mig::Profile& profile = model.table[static_cast<std::size_t>(index)];
  const Parsed<std::int64_t> start = parse_whole(text.substr(at + 1));
  if (!start || *start >= mig::slices_max ||
      !mig::may_start(profile, static_cast<std::uint32_t>(*start))) {
    return tl::unexpected(in_quotes(text.substr(at + 1)) + " is no start of " +
                          std::string(profile.name) + "; expected one of " + starts_of(profile));
  }
  return mig::Place{index, static_cast<std::uint32_t>(*start)};
}

class LayoutReader {
 public:
  explicit LayoutReader(Reading& reading) : reading_(reading) {}

  MigLayout read(const Node& root) {
    Fields top(root, "", reading_);
    if (top.present() && !top.has("devices")) top.missing("devices", "a list of devices");
    top.each("devices", mig_devices_max, [&](Fields& item) { read_device(item); });
    top.close();
    return std::move(out_);
  }

 private:
  void read_device(Fields& item) {
    std::string name;
    const mig::DeviceModel* model = nullptr;
    std::int64_t count = 1;
    const bool named = item.name("name", name, Need::required);
    if (item.present() && !item.has("model")) item.missing("model", "one of " + known_models());
    item.parsed("model", model, parse_model);
    item.whole("count", count, {1, static_cast<std::int64_t>(mig_devices_max)});
    mig::Device device{model, {}};
    read_instances(item, "idle", mig::Use::idle, device);
    read_instances(item, "busy", mig::Use::busy, device);
    item.close();
    if (!named || model == nullptr) return;
    if (out_.devices.size() + static_cast<std::size_t>(count) > mig_devices_max) {
      item.refuse("count",
                  "makes more than " + std::to_string(mig_devices_max) + " devices in all");
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string own = count == 1 ? name : name + "-" + std::to_string(i);
      if (!names_.insert(own).second) {
        item.refuse("name", in_quotes(own) + " is the name of two devices");
        return;
      }
      out_.names.push_back(own);
      out_.devices.push_back(device);
    }
  }

  void read_instances(Fields& item, std::string_view key, mig::Use use, mig::Device& device) {
    std::vector<std::string> words;
    if (!item.texts(key, words, mig::slices_max) || device.model == nullptr) return;
    for (const std::string& word : words) {
      const Parsed<mig::Place> place = parse_place(*device.model, word);
      if (!place) {
        item.refuse(key, place.error());
        continue;
      }
      std::vector<mig::Place> places = mig::places_of(device);
      places.push_back(*place);
      if (mig::legality(*device.model, places) != mig::Legality::legal) {
        item.refuse(key, in_quotes(word) + " does not fit beside the instances before it");
        continue;
      }
      device.instances.push_back({*place, use});
    }
  }

  Reading& reading_;
  MigLayout out_;
  std::set<std::string> names_;
};

// The parts of a list with commas; what is empty stays, for the message.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

bool is_known_profile(std::string_view name) {
  return std::any_of(mig::models().begin(), mig::models().end(),
                     [&](const auto& model) { return mig::find_profile(model, name) >= 0; });
}

Parsed<mig::Need> parse_need(std::string_view text) {
  mig::Need need{MiB(0), 1};
  const std::size_t slash = text.find('/');
  Parsed<MiB> memory = parse_memory(text.substr(0, slash));
  if (!memory) return tl::unexpected(memory.error());
  need.memory = *memory;
  if (slash == std::string_view::npos) return need;
  std::string_view compute = text.substr(slash + 1);
  const bool with_unit = compute.ends_with('g');
  if (with_unit) compute.remove_suffix(1);
  const Parsed<std::int64_t> slices = parse_whole(compute);
  if (!with_unit || !slices || *slices < 1 || *slices > mig::slices_max) {
    return tl::unexpected(in_quotes(text.substr(slash + 1)) +
                          " is no number of compute slices; expected 1g to 8g");
  }
  need.compute_slices = static_cast<std::int32_t>(*slices);
  return need;
}

Parsed<mig::Want> parse_want(std::string_view text) {
  mig::Want want;
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return tl::unexpected(in_quotes(text) + " has no count; expected as 3g.40gb=2");
  }
  const std::string_view what = text.substr(0, equals);
  if (is_known_profile(what)) {
    want.profile = std::string(what);
  } else if (what.find("iB") != std::string_view::npos) {
    const Parsed<mig::Need> need = parse_need(what);
    if (!need) return tl::unexpected(need.error());
    want.need = *need;
  } else {
    return tl::unexpected(in_quotes(what) +
                          " is no profile of any model; expected one as `neap mig profiles` lists "
                          "them, or memory and compute as 24GiB/2g");
  }
  std::string_view number = text.substr(equals + 1);
  const std::size_t star = number.find('*');
  if (star != std::string_view::npos) {
    const Parsed<std::int64_t> weight = parse_whole(number.substr(star + 1));
    if (!weight || *weight < 1 || *weight > mig::weight_max) {
      return tl::unexpected(in_quotes(number.substr(star + 1)) + " is no weight; expected 1 to " +
                            std::to_string(mig::weight_max));
    }
    want.weight = *weight;
    number = number.substr(0, star);
  }
  const Parsed<std::int64_t> count = parse_whole(number);
  if (!count || *count < 1 || *count > mig::count_max) {
    return tl::unexpected(in_quotes(number) + " is no count; expected 1 to " +
                          std::to_string(mig::count_max));
  }
  want.count = *count;
  return want;
}

}  // namespace

std::optional<MigLayout> parse_mig_layout(std::string_view text, Problems& problems) {
  const std::optional<Node> root = parse_document(text, problems);
  if (!root) return std::nullopt;
  Reading reading{problems};
  MigLayout layout = LayoutReader(reading).read(*root);
  if (!problems.empty()) return std::nullopt;
  return layout;
}

Parsed<MigLayout> parse_mig_devices(std::string_view text) {
  MigLayout layout;
  for (const std::string_view part : parts_of(text)) {
    std::int64_t count = 1;
    std::string_view name = part;
    const std::size_t times = part.find('x');
    if (const auto number = parse_whole(part.substr(0, times)); number && times < part.size()) {
      count = *number;
      name = part.substr(times + 1);
    }
    const Parsed<const mig::DeviceModel*> model = parse_model(name);
    if (!model) return tl::unexpected(model.error());
    const auto most = static_cast<std::int64_t>(mig_devices_max - layout.devices.size());
    if (count < 1 || count > most) {
      return tl::unexpected(in_quotes(part) + " makes no number of devices from 1 to " +
                            std::to_string(mig_devices_max) + " in all");
    }
    for (std::int64_t i = 0; i < count; ++i) {
      layout.names.push_back("gpu-" + std::to_string(layout.names.size()));
      layout.devices.push_back({*model, {}});
    }
  }
  return layout;
}

Parsed<std::vector<mig::Want>> parse_mig_demand(std::string_view text) {
  std::vector<mig::Want> wants;
  for (const std::string_view part : parts_of(text)) {
    Parsed<mig::Want> want = parse_want(part);
    if (!want) return tl::unexpected(want.error());
    if (wants.size() == mig::wants_max) {
      return tl::unexpected("holds more than " + std::to_string(mig::wants_max) + " entries");
    }
    wants.push_back(std::move(*want));
  }
  return wants;
}

std::string to_text(const mig::Want& want) {
  if (!want.profile.empty()) return want.profile;
  return to_text(want.need.memory) + "/" + std::to_string(want.need.compute_slices) + "g";
}

std::set<std::string> mig_layout_keys() {
  return keys_asked_by([](Reading& reading) { LayoutReader(reading).read(Node()); });
}

}  // namespace neap::config
