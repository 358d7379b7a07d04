#include "cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace neap::cli {

namespace {

std::string_view code_of(Colour colour) {
  switch (colour) {
    case Colour::plain:
      return "";
    case Colour::good:
      return "\033[32m";
    case Colour::warning:
      return "\033[33m";
    case Colour::bad:
      return "\033[31m";
    case Colour::faint:
      return "\033[2m";
  }
  return "";
}

bool colours_wanted() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

}  // namespace

Terminal::Terminal(std::FILE* out, std::FILE* err)
    : out_(out),
      err_(err),
      interactive_(::fileno(out) >= 0 && ::isatty(::fileno(out)) == 1),
      coloured_(interactive_ && colours_wanted()) {}

void Terminal::write(std::string_view text) { std::fwrite(text.data(), 1, text.size(), out_); }

void Terminal::line(std::string_view text) {
  write(text);
  write("\n");
}

void Terminal::complain(std::string_view text) {
  std::fflush(out_);
  std::fwrite(text.data(), 1, text.size(), err_);
  std::fputc('\n', err_);
  std::fflush(err_);
}

void Terminal::status(std::string_view text) {
  const int fd = ::fileno(err_);
  if (fd < 0 || ::isatty(fd) != 1 || (text.empty() && !has_status_)) return;
  has_status_ = !text.empty();
  const std::string line = "\r\033[K" + std::string(text);
  std::fwrite(line.data(), 1, line.size(), err_);
  std::fflush(err_);
}

void Terminal::flush() { std::fflush(out_); }

std::string Terminal::painted(std::string_view text, Colour colour) const {
  if (!coloured_ || colour == Colour::plain) return std::string(text);
  return std::string(code_of(colour)) + std::string(text) + "\033[0m";
}

std::string harmless(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    // U+0080 to U+009F command terminals as well: 0xc2 0x9b is what ESC [ is.
    const bool c1 = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    out += byte < 0x20 || byte == 0x7f || c1 ? '?' : text[i];
    if (c1) ++i;
  }
  return out;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

Table::Table(std::vector<std::string> heads) : heads_(std::move(heads)) {}

void Table::add(std::vector<Cell> row) {
  for (Cell& cell : row) cell.text = harmless(cell.text);
  rows_.push_back(std::move(row));
}

void Table::print(Terminal& terminal) const {
  std::vector<std::size_t> widths;
  for (const std::string& head : heads_) widths.push_back(width_of(head));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row[i].text));
    }
  }
  const auto print_row = [&](const std::vector<Cell>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      line += terminal.painted(row[i].text, row[i].colour);
      if (i + 1 < row.size()) line.append(widths[i] - width_of(row[i].text) + 2, ' ');
    }
    terminal.line(line);
  };
  std::vector<Cell> heads;
  for (const std::string& head : heads_) heads.push_back({head, Colour::faint});
  print_row(heads);
  for (const auto& row : rows_) print_row(row);
}

}  // namespace neap::cli
