// A set of small dense ids as a bitmap of three levels: insert, erase, first, last and next are
// a few word operations each, whatever the size, and iteration is in order of id.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace neap {

class IdSet {
 public:
  void insert(std::uint32_t id) {
    reserve(id);
    if (!test(words_, id)) ++size_;
    words_[id >> 6] |= bit(id);
    middle_[id >> 12] |= bit(id >> 6);
    top_[id >> 18] |= bit(id >> 12);
  }

  void erase(std::uint32_t id) {
    if (!contains(id)) return;
    --size_;
    if ((words_[id >> 6] &= ~bit(id)) != 0) return;
    if ((middle_[id >> 12] &= ~bit(id >> 6)) != 0) return;
    top_[id >> 18] &= ~bit(id >> 12);
  }

  [[nodiscard]] bool contains(std::uint32_t id) const {
    return (id >> 6) < words_.size() && test(words_, id);
  }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::uint32_t size() const { return size_; }

  // The smallest member >= from.
  [[nodiscard]] std::optional<std::uint32_t> at_or_after(std::uint32_t from) const {
    if ((from >> 6) >= words_.size()) return std::nullopt;
    if (const std::uint64_t w = words_[from >> 6] >> (from & 63)) {
      return from + static_cast<std::uint32_t>(std::countr_zero(w));
    }
    const auto word = next_set(middle_, (from >> 6) + 1, &top_);
    if (!word) return std::nullopt;
    return (*word << 6) + static_cast<std::uint32_t>(std::countr_zero(words_[*word]));
  }
  [[nodiscard]] std::optional<std::uint32_t> first() const { return at_or_after(0); }

  // The largest member <= from.
  [[nodiscard]] std::optional<std::uint32_t> at_or_before(std::uint32_t from) const {
    if (words_.empty()) return std::nullopt;
    const auto end = static_cast<std::uint32_t>(words_.size() * 64 - 1);
    if (from > end) from = end;
    if (const std::uint64_t w = words_[from >> 6] << (63 - (from & 63))) {
      return from - static_cast<std::uint32_t>(std::countl_zero(w));
    }
    for (std::uint32_t word = from >> 6; word-- > 0;) {
      // Whole empty stretches are skipped by the level above.
      if (middle_[word >> 6] == 0) {
        word &= ~63U;
        continue;
      }
      if (words_[word] != 0) {
        return (word << 6) + 63 - static_cast<std::uint32_t>(std::countl_zero(words_[word]));
      }
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint32_t> last() const { return at_or_before(0xffffffffU); }

  friend bool operator==(const IdSet& a, const IdSet& b) {
    if (a.size_ != b.size_) return false;
    for (auto id = a.first(); id; id = a.at_or_after(*id + 1)) {
      if (!b.contains(*id)) return false;
    }
    return true;
  }

 private:
  static std::uint64_t bit(std::uint32_t id) { return std::uint64_t{1} << (id & 63); }
  static bool test(const std::vector<std::uint64_t>& words, std::uint32_t id) {
    return (words[id >> 6] & bit(id)) != 0;
  }
  void reserve(std::uint32_t id) {
    if ((id >> 6) >= words_.size()) words_.resize((id >> 6) + 1);
    if ((id >> 12) >= middle_.size()) middle_.resize((id >> 12) + 1);
    if ((id >> 18) >= top_.size()) top_.resize((id >> 18) + 1);
  }
  static std::optional<std::uint32_t> next_set(const std::vector<std::uint64_t>& level,
                                               std::uint32_t from,
                                               const std::vector<std::uint64_t>* above) {
    if ((from >> 6) >= level.size()) return std::nullopt;
    if (const std::uint64_t w = level[from >> 6] >> (from & 63)) {
      return from + static_cast<std::uint32_t>(std::countr_zero(w));
    }
    if (above == nullptr) {
      for (std::uint32_t i = (from >> 6) + 1; i < level.size(); ++i) {
        if (level[i] != 0) return (i << 6) + static_cast<std::uint32_t>(std::countr_zero(level[i]));
      }
      return std::nullopt;
    }
    const auto word = next_set(*above, (from >> 6) + 1, nullptr);
    if (!word) return std::nullopt;
    return (*word << 6) + static_cast<std::uint32_t>(std::countr_zero(level[*word]));
  }

  std::vector<std::uint64_t> words_, middle_, top_;
  std::uint32_t size_ = 0;
};

}  // namespace neap
