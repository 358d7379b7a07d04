// Any bytes as the answer of an engine, and as what it says about itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/engine.h"

namespace {

void check_printable(std::string_view text) {
  for (const char c : text) {
    if (c < ' ' || c > '~') std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace neap::engine;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto answer = parse_answer(text);
  if (answer && (answer->status < 200 || answer->status > 599)) std::abort();
  if (answer && answer->body.size() > size) std::abort();
  const std::string_view body = answer ? std::string_view(answer->body) : text;
  if (const auto models = read_models(body)) {
    if (models->size() > 256) std::abort();
    for (const std::string& name : *models) check_printable(name);
  }
  if (const auto slots = read_slots(body)) {
    for (const EngineSlot& slot : *slots) {
      if (slot.id < 0 || slot.id >= 4096) std::abort();
    }
  }
  const Memory memory = read_memory(body);
  if (memory.device.value_or(0) < 0 || memory.host.value_or(0) < 0) std::abort();
  const std::string fault = read_fault(body);
  if (fault.size() > 200) std::abort();
  check_printable(fault);
  (void)read_sleeping(body);
  (void)kind_of_launch(body);
  return 0;
}
