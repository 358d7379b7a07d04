// Bytes of the journal and of snapshots: each field in the order of its NEAP_FIELDS list,
// integers as zigzag varints, strings and vectors with their length before them, optionals with
// one byte, variants with their index. No field names: the schema version of the journal says
// which lists wrote them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/model/fields.h"
#include "core/model/result.h"

namespace neap {

// Raised with any change of a NEAP_FIELDS list or of a variant's order.
inline constexpr std::uint32_t codec_version = 1;

[[nodiscard]] std::string encode(const Event& event);
[[nodiscard]] std::string encode(const Decision& decision);
// Refuses bytes that are short, left over, or out of range (ErrorCode::invalid_argument).
[[nodiscard]] Result<Event> decode_event(std::string_view bytes);
[[nodiscard]] Result<Decision> decode_decision(std::string_view bytes);
// "TaskPlaced", as the journal's listing shows it.
[[nodiscard]] std::string_view name_of(const Event& event);
[[nodiscard]] std::string_view name_of(const Decision& decision);

// ---- the visitors ----------------------------------------------------------------------------

template <class T>
concept HasFields = requires(const T& t, int& visitor) {
  visit_fields(visitor, t);
};

class Encoder {
 public:
  template <class T>
  void operator()(const char* /*name*/, const T& value) {
    put(value);
  }

  template <class T>
  void put(const Quantity<T>& q) {
    put_signed(q.value);
  }
  void put(Time t) { put_signed(t.us); }
  template <class Tag, class Rep>
  void put(Id<Tag, Rep> id) {
    put_unsigned(static_cast<std::uint64_t>(static_cast<Rep>(id.value + 1)));
  }
  // tidy-allow(boolean-parameter): a value to write, not a switch
  void put(bool b) { out_.push_back(b ? 1 : 0); }
  void put(std::string_view s);
  void put(const std::string& s) { put(std::string_view(s)); }
  template <class T>
  requires std::is_enum_v<T>
  void put(T e) { put_unsigned(static_cast<std::uint64_t>(e)); }
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) void put(T v) {
    if constexpr (std::is_signed_v<T>)
      put_signed(v);
    else
      put_unsigned(v);
  }
  template <class T>
  void put(const std::optional<T>& o) {
    put(o.has_value());
    if (o) put(*o);
  }
  template <class T>
  void put(const std::vector<T>& v) {
    put_unsigned(v.size());
    for (const T& item : v) put(item);
  }
  template <class T>
  requires std::is_class_v<T> && requires(const T& t, Encoder& e) { visit_fields(e, t); }
  void put(const T& t) { visit_fields(*this, t); }

  void put_unsigned(std::uint64_t v);
  void put_signed(std::int64_t v);
  [[nodiscard]] std::string take() { return std::move(out_); }
  [[nodiscard]] const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

// After the first fault every get yields a default and failed() stays true.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : in_(bytes) {}

  template <class T>
  void operator()(const char* /*name*/, T& value) {
    get(value);
  }

  template <class T>
  void get(Quantity<T>& q) {
    q.value = get_signed();
  }
  void get(Time& t) { t.us = get_signed(); }
  template <class Tag, class Rep>
  void get(Id<Tag, Rep>& id) {
    id.value = static_cast<Rep>(static_cast<Rep>(get_unsigned()) - 1);
  }
  void get(bool& b);
  void get(std::string& s);
  template <class T>
  requires std::is_enum_v<T>
  void get(T& e) {
    const std::uint64_t v = get_unsigned();
    if (v > 255) {
      failed_ = true;
      return;
    }
    e = static_cast<T>(v);
  }
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) void get(T& v) {
    if constexpr (std::is_signed_v<T>)
      v = static_cast<T>(get_signed());
    else
      v = static_cast<T>(get_unsigned());
  }
  template <class T>
  void get(std::optional<T>& o) {
    bool has = false;
    get(has);
    o.reset();
    if (has && !failed_) get(o.emplace());
  }
  template <class T>
  void get(std::vector<T>& v) {
    const std::uint64_t n = get_unsigned();
    v.clear();
    if (n > in_.size()) {
      failed_ = true;
      return;
    }  // an item takes a byte at least
    v.reserve(n);
    for (std::uint64_t i = 0; i < n && !failed_; ++i) get(v.emplace_back());
  }
  template <class T>
  requires std::is_class_v<T> && requires(T& t, Decoder& d) { visit_fields(d, t); }
  void get(T& t) { visit_fields(*this, t); }

  std::uint64_t get_unsigned();
  std::int64_t get_signed();
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool at_end() const { return in_.empty(); }

 private:
  std::string_view in_;
  bool failed_ = false;
};

}  // namespace neap
