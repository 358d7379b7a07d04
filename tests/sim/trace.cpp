#include "tests/sim/trace.h"

#include "core/model/codec.h"
#include "core/model/fields.h"

namespace neap::sim {

namespace {

class Writer {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    text_ += ' ';
    text_ += name;
    text_ += '=';
    put(value);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  template <class Tag>
  void put(const Quantity<Tag>& q) {
    text_ += std::to_string(q.value);
  }
  void put(Time t) { text_ += std::to_string(t.us); }
  template <class Tag, class Rep>
  void put(const Id<Tag, Rep>& id) {
    text_ += id.valid() ? std::to_string(id.value) : "-";
  }
  void put(const std::string& s) { text_ += s; }
  template <class T>
  requires std::is_integral_v<T>
  void put(T v) { text_ += std::to_string(v); }
  template <class T>
  requires std::is_enum_v<T>
  void put(T v) { text_ += std::to_string(static_cast<int>(v)); }
  template <class T>
  void put(const std::optional<T>& o) {
    if (o)
      put(*o);
    else
      text_ += '-';
  }
  template <class T>
  void put(const std::vector<T>& items) {
    text_ += '[';
    for (const T& item : items) {
      put(item);
      text_ += ' ';
    }
    text_ += ']';
  }
  template <class T>
  requires requires(const T& t, Writer& w) { visit_fields(w, t); }
  void put(const T& t) {
    text_ += '{';
    visit_fields(*this, t);
    text_ += '}';
  }

  std::string text_;
};

std::string line(Time time, std::uint64_t sequence, std::string_view mark, std::string_view name,
                 const std::string& fields) {
  return std::to_string(time.us / 1'000) + " ms #" + std::to_string(sequence) + std::string(mark) +
         std::string(name) + fields + "\n";
}

template <class Variant>
std::string fields_of(const Variant& record) {
  Writer writer;
  std::visit([&](const auto& r) { visit_fields(writer, r); }, record);
  return writer.take();
}

}  // namespace

std::string trace_line(Time time, std::uint64_t sequence, const Event& event) {
  return line(time, sequence, " ", name_of(event), fields_of(event));
}

std::string trace_line(Time time, std::uint64_t sequence, const Decision& decision) {
  return line(time, sequence, "   -> ", name_of(decision), fields_of(decision));
}

}  // namespace neap::sim
