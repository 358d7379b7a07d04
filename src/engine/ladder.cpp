#include "engine/ladder.h"

#include <array>

namespace neap::engine {
namespace {

Result<Memory> carry_out(const Engine& engine, Rung rung) {
  switch (rung) {
    case Rung::shrink:
      return engine.shrink_kv(1);  // a request may be on its way still
    case Rung::offload:
      return engine.offload_kv(0);
    case Rung::drop:
      return engine.drop_kv(0);
    case Rung::sleep:
      return engine.sleep(SleepLevel::discard);  // it will not wake again
  }
  return Memory{};
}

}  // namespace

std::string_view name_of(Rung rung) {
  constexpr std::array names{"shrink", "offload", "drop", "sleep"};
  return names[static_cast<std::size_t>(rung)];
}

std::vector<RungDone> give_memory_back(const Engine& engine, Rung first, Rung last) {
  std::vector<RungDone> done;
  for (auto at = static_cast<int>(first); at <= static_cast<int>(last); ++at) {
    const auto rung = static_cast<Rung>(at);
    done.push_back({rung, carry_out(engine, rung)});
    const Result<Memory>& outcome = done.back().outcome;
    if (!outcome && outcome.error().code != ErrorCode::refused) break;
  }
  return done;
}

std::string text_of(const std::vector<RungDone>& done) {
  std::string text;
  for (const RungDone& one : done) {
    text += (text.empty() ? "" : "; ") + std::string(name_of(one.rung)) + ": ";
    if (!one.outcome) {
      text += one.outcome.error().message;
    } else {
      text += "done";
      if (one.outcome->device) {
        text += ", " + std::to_string(*one.outcome->device) + " bytes on the device";
      }
    }
  }
  return text;
}

}  // namespace neap::engine
