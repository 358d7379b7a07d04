#include "core/model/codec.h"

#include <array>
#include <utility>

namespace neap {

namespace {

constexpr std::array event_names{"PoolConfigured",
                                 "NodeJoined",
                                 "NodeUnreachable",
                                 "NodeLost",
                                 "DeviceHealthChanged",
                                 "ForeignMemoryChanged",
                                 "TaskSubmitted",
                                 "TaskCancelRequested",
                                 "ServiceSubmitted",
                                 "ServiceRemoveRequested",
                                 "ServiceScaled",
                                 "ServiceMeasured",
                                 "PauseRequested",
                                 "ResumeRequested",
                                 "TimerFired",
                                 "TaskStarted",
                                 "ReplicaHealthy",
                                 "ReplicaUnhealthy",
                                 "ContractGreeting",
                                 "StepsReported",
                                 "RequestsServed",
                                 "CheckpointDurable",
                                 "YieldAcknowledged",
                                 "ContractBroken",
                                 "TaskExited",
                                 "StartFailed",
                                 "PlacementLearned",
                                 "ServiceReplaced",
                                 "PipelineSubmitted",
                                 "PipelineCancelRequested",
                                 "MetricsRead",
                                 "WaitExpected",
                                 "DrillStarted",
                                 "DrillStopRequested",
                                 "AdoptionChangeRequested",
                                 "MemoryObserved"};
static_assert(event_names.size() == std::variant_size_v<Event>);

constexpr std::array decision_names{"TaskAdmitted",
                                    "TaskRefused",
                                    "TaskPlaced",
                                    "PreemptionPlanned",
                                    "PreemptionDropped",
                                    "YieldAsked",
                                    "YieldWithdrawn",
                                    "CheckpointAsked",
                                    "StopAsked",
                                    "KillAsked",
                                    "BackoffEnded",
                                    "ReplicaAdded",
                                    "ReplicaDropped",
                                    "RolesAssigned",
                                    "DeviceExcluded",
                                    "DeviceReadmitted",
                                    "WaitReasonChanged",
                                    "ConditionChanged",
                                    "PreemptRetryScheduled",
                                    "RoomReserved",
                                    "MovePlanned",
                                    "LookScheduled",
                                    "DemandCounted",
                                    "StageEntered",
                                    "StageEnded",
                                    "ServiceRolled",
                                    "StartBoundSet",
                                    "TaskForced",
                                    "TierChanged",
                                    "DrillPaused",
                                    "DrillResumed",
                                    "DrillWithdrawn",
                                    "DrillEnded",
                                    "LoadingEnded"};
static_assert(decision_names.size() == std::variant_size_v<Decision>);

template <class Variant>
std::string encode_variant(const Variant& record) {
  Encoder encoder;
  encoder.put_unsigned(record.index());
  std::visit([&](const auto& alternative) { encoder.put(alternative); }, record);
  return encoder.take();
}

template <class Variant, std::size_t... I>
bool decode_alternative(Decoder& decoder, std::uint64_t index, Variant& out,
                        std::index_sequence<I...> /*indices*/) {
  return ((index == I && (decoder.get(out.template emplace<I>()), true)) || ...);
}

template <class Variant>
Result<Variant> decode_variant(std::string_view bytes, std::string_view what) {
  Decoder decoder(bytes);
  const std::uint64_t index = decoder.get_unsigned();
  Variant out;
  if (decoder.failed() ||
      !decode_alternative(decoder, index, out,
                          std::make_index_sequence<std::variant_size_v<Variant>>{})) {
    return fail(ErrorCode::invalid_argument,
                "unknown kind of " + std::string(what) + ": " + std::to_string(index));
  }
  if (decoder.failed() || !decoder.at_end()) {
    return fail(ErrorCode::invalid_argument,
                "the bytes of this " + std::string(what) + " are cut short or left over");
  }
  return out;
}

}  // namespace

std::string encode(const Event& event) { return encode_variant(event); }
std::string encode(const Decision& decision) { return encode_variant(decision); }
Result<Event> decode_event(std::string_view bytes) { return decode_variant<Event>(bytes, "event"); }
Result<Decision> decode_decision(std::string_view bytes) {
  return decode_variant<Decision>(bytes, "decision");
}
std::string_view name_of(const Event& event) { return event_names[event.index()]; }
std::string_view name_of(const Decision& decision) { return decision_names[decision.index()]; }

void Encoder::put(std::string_view s) {
  put_unsigned(s.size());
  out_.append(s);
}

void Encoder::put_unsigned(std::uint64_t v) {
  while (v >= 0x80) {
    out_.push_back(static_cast<char>(v | 0x80));
    v >>= 7;
  }
  out_.push_back(static_cast<char>(v));
}

void Encoder::put_signed(std::int64_t v) {
  put_unsigned((static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63));
}

void Decoder::get(bool& b) {
  const std::uint64_t v = get_unsigned();
  if (v > 1) failed_ = true;
  b = v == 1;
}

void Decoder::get(std::string& s) {
  const std::uint64_t n = get_unsigned();
  s.clear();
  if (n > in_.size()) {
    failed_ = true;
    return;
  }
  s.assign(in_.substr(0, n));
  in_.remove_prefix(n);
}

std::uint64_t Decoder::get_unsigned() {
  std::uint64_t v = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (in_.empty() || failed_) break;
    const auto byte = static_cast<unsigned char>(in_.front());
    in_.remove_prefix(1);
    v |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return v;
  }
  failed_ = true;
  in_ = {};
  return 0;
}

std::int64_t Decoder::get_signed() {
  const std::uint64_t v = get_unsigned();
  return static_cast<std::int64_t>((v >> 1) ^ (~(v & 1) + 1));
}

}  // namespace neap
