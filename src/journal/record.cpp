#include "journal/record.h"

#include <bit>
#include <cstring>

#include <xxhash.h>

#include "core/model/check.h"

namespace neap::journal {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the hashed form of a record is little-endian");

// One-shot hashing of a small contiguous buffer is several times faster than streaming.
constexpr std::size_t one_shot_bytes = 1024;
constexpr std::size_t header_bytes = 16 + 8 + 8 + 8 + 2 + 1;

ChainHash canonical(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  ChainHash result;
  std::memcpy(result.data(), bytes.digest, result.size());
  return result;
}

void write_header(std::byte* to, const ChainHash& previous, const RecordView& record) {
  const std::uint64_t length = record.payload.size();
  std::memcpy(to, previous.data(), 16);
  std::memcpy(to + 16, &record.sequence, 8);
  std::memcpy(to + 24, &record.time.us, 8);
  std::memcpy(to + 32, &length, 8);
  std::memcpy(to + 40, &record.type, 2);
  std::memcpy(to + 42, &record.kind, 1);
}

}  // namespace

ChainHash chain(const ChainHash& previous, const RecordView& record) {
  std::byte buffer[one_shot_bytes];
  write_header(buffer, previous, record);
  const std::size_t size = record.payload.size();
  if (header_bytes + size <= one_shot_bytes) {
    if (size > 0) std::memcpy(buffer + header_bytes, record.payload.data(), size);
    return canonical(XXH3_128bits(buffer, header_bytes + size));
  }
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  thread_local std::unique_ptr<XXH3_state_t, Free> state(XXH3_createState());
  XXH3_128bits_reset(state.get());
  XXH3_128bits_update(state.get(), buffer, header_bytes);
  XXH3_128bits_update(state.get(), record.payload.data(), size);
  return canonical(XXH3_128bits_digest(state.get()));
}

ChainHash hash_of(Bytes bytes) { return canonical(XXH3_128bits(bytes.data(), bytes.size())); }

std::string to_hex(const ChainHash& hash) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : hash) {
    text += digits[std::to_integer<unsigned>(b) >> 4];
    text += digits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

Bytes bytes_of(const ChainHash& hash) { return {hash.data(), hash.size()}; }

bool assign(ChainHash& hash, Bytes bytes) {
  if (bytes.size() != hash.size()) return false;
  std::memcpy(hash.data(), bytes.data(), hash.size());
  return true;
}

void Batch::add(Time time, RecordKind kind, std::uint16_t type, Bytes payload) {
  NEAP_CHECK(payload.size() <= max_payload_bytes);
  bytes_.insert(bytes_.end(), payload.begin(), payload.end());
  items_.push_back({time, bytes_.size(), type, kind});
}

void Batch::add(const Batch& other) {
  const std::size_t offset = bytes_.size();
  bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
  for (const Item& item : other.items_) {
    items_.push_back({item.time, offset + item.end, item.type, item.kind});
  }
}

void Batch::clear() {
  items_.clear();
  bytes_.clear();
}

RecordView Batch::at(std::size_t index) const {
  const Item& item = items_[index];
  const std::size_t begin = index == 0 ? 0 : items_[index - 1].end;
  return {0, item.time, item.kind, item.type, Bytes(bytes_).subspan(begin, item.end - begin)};
}

}  // namespace neap::journal
