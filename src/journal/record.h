// What the journal holds: records in one gapless sequence, each bound to all before it by a
// hash, so that no record can be altered, moved, removed or slipped in unnoticed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/units.h"
#include "journal/sqlite.h"

namespace neap::journal {

// Values are stored: never renumber.
enum class RecordKind : std::uint8_t {
  event = 1,      // a fact: what apply takes
  decision = 2,   // actions with their reasons
  aggregate = 3,  // steps and requests of 10 s
  reason = 4,     // a changed reason of a waiting task
};

// XXH3-128 in canonical byte order. It guards against accidents and careless edits; it is not a
// cryptographic hash and does not stop a forger who recomputes the whole chain.
using ChainHash = std::array<std::byte, 16>;

struct RecordView {
  std::uint64_t sequence = 0;  // from 1
  Time time;                   // never falls from one record to the next
  RecordKind kind = RecordKind::event;
  std::uint16_t type = 0;  // the kind's own numbering
  Bytes payload;
};

inline constexpr std::size_t max_payload_bytes = 16u << 20;

// hash(previous, sequence, time, kind, type, length, payload)
[[nodiscard]] ChainHash chain(const ChainHash& previous, const RecordView& record);
[[nodiscard]] ChainHash hash_of(Bytes bytes);
[[nodiscard]] std::string to_hex(const ChainHash& hash);
[[nodiscard]] Bytes bytes_of(const ChainHash& hash);
// False when `bytes` has another length.
[[nodiscard]] bool assign(ChainHash& hash, Bytes bytes);

// Records that become durable together or not at all. Payloads lie in one buffer.
class Batch {
 public:
  void add(Time time, RecordKind kind, std::uint16_t type, Bytes payload);
  void add(const Batch& other);
  void clear();

  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] std::size_t payload_bytes() const { return bytes_.size(); }
  // The sequence of the view is 0: the journal numbers its records.
  [[nodiscard]] RecordView at(std::size_t index) const;

 private:
  struct Item {
    Time time;
    std::size_t end = 0;  // the payload ends here in bytes_
    std::uint16_t type = 0;
    RecordKind kind = RecordKind::event;
  };
  std::vector<Item> items_;
  std::vector<std::byte> bytes_;
};

}  // namespace neap::journal
