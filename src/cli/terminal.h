// Where a verb writes: tables, colours where a person looks, plain text elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace neap::cli {

enum class Colour : std::uint8_t { plain, good, warning, bad, faint };

class Terminal {
 public:
  // Colours when `out` is a terminal and NO_COLOR is not set.
  Terminal(std::FILE* out, std::FILE* err);

  void line(std::string_view text);  // to out, with a line break
  void write(std::string_view text);
  void complain(std::string_view text);  // to err, with a line break
  // One line on err that the next call replaces; an empty one ends it. Only where a person looks.
  void status(std::string_view text);
  [[nodiscard]] std::string painted(std::string_view text, Colour colour) const;
  [[nodiscard]] bool interactive() const { return interactive_; }
  void flush();

 private:
  std::FILE* out_;
  std::FILE* err_;
  bool interactive_;
  bool coloured_;
  bool has_status_ = false;
};

struct Cell {
  std::string text;
  Colour colour = Colour::plain;
};

// Columns as wide as their widest cell; the last one is not padded. Control characters in cells
// are shown as '?', so that a name cannot steer the terminal.
class Table {
 public:
  explicit Table(std::vector<std::string> heads);
  void add(std::vector<Cell> row);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  void print(Terminal& terminal) const;

 private:
  std::vector<std::string> heads_;
  std::vector<std::vector<Cell>> rows_;
};

// `text` without control characters.
[[nodiscard]] std::string harmless(std::string_view text);
// Characters, not bytes.
[[nodiscard]] std::size_t width_of(std::string_view text);

}  // namespace neap::cli
