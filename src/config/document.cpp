#include "config/document.h"

#include <exception>
#include <istream>
#include <streambuf>
#include <utility>

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "config/text.h"

// The only file that knows yaml-cpp, and where its exceptions end.
namespace neap::config {

namespace {

// Where the line (from 1) begins; the text's end when there is no such line.
std::size_t line_begin(std::string_view text, int line) {
  std::size_t begin = 0;
  for (int at = 1; at < line; ++at) {
    begin = text.find('\n', begin);
    if (begin == std::string_view::npos) return text.size();
    ++begin;
  }
  return begin;
}

// Builds the tree from the parser's events. After the first fault it only counts: the parser
// cannot be stopped, and the text's size bounds it.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Problems& problems) : problems_(problems) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!accept(mark, "", anchor)) return;
    Node node = node_at(mark, Node::Kind::null);
    place(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "an alias (*name) is not accepted; write the value out");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (!accept(mark, tag, anchor)) return;
    // "\0" is valid YAML, and would cut names, paths and arguments short wherever C reads them.
    if (value.find('\0') != std::string::npos) return refuse(mark, "holds a zero byte");
    // What an escape such as "\ud800" stands for need not be a character.
    if (!is_utf8(value)) return refuse(mark, "is not text in UTF-8");
    Node node = node_at(mark, Node::Kind::scalar);
    node.text = value;
    node.quoted = tag == "!";
    last_quote_ = node.quoted ? mark : YAML::Mark::null_mark();
    if (!node.quoted && (value.empty() || value == "~" || value == "null")) {
      node.kind = Node::Kind::null;
      node.text.clear();
    }
    place(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::mapping);
  }
  void OnMapEnd() override { close(); }

  Node take_root() { return std::move(root_); }
  [[nodiscard]] bool failed() const { return failed_; }

  // yaml-cpp takes a quote that nobody closes to reach to the end of the file: a file cut short
  // would pass. Only the last scalar can be such a one.
  void check_last_quote(std::string_view text) {
    if (last_quote_.is_null()) return;
    std::size_t at =
        line_begin(text, last_quote_.line + 1) + static_cast<std::size_t>(last_quote_.column);
    if (at >= text.size() || (text[at] != '\'' && text[at] != '"')) return;
    const char quote = text[at];
    for (++at; at < text.size(); ++at) {
      if (quote == '"' && text[at] == '\\') {
        ++at;
      } else if (text[at] == quote) {
        if (quote == '"' || at + 1 == text.size() || text[at + 1] != quote) return;
        ++at;  // '' stands for one quote
      }
    }
    refuse(last_quote_, "a quote that is never closed");
  }

 private:
  struct Open {
    Node node;
    std::optional<Member> pending;  // a key that waits for its value
  };

  static Node node_at(const YAML::Mark& mark, Node::Kind kind) {
    Node node;
    node.kind = kind;
    node.line = mark.line + 1;
    return node;
  }

  [[nodiscard]] std::string field() const {
    std::string path;
    for (const Open& level : open_) {
      if (level.node.kind == Node::Kind::sequence) {
        path += "[" + std::to_string(level.node.items.size()) + "]";
      } else if (level.pending) {
        path += (path.empty() ? "" : ".") + level.pending->key.substr(0, 64);
      }
    }
    return path;
  }

  void refuse(const YAML::Mark& mark, std::string message) {
    if (!failed_) problems_.add(mark.line + 1, field(), std::move(message));
    failed_ = true;
  }

  bool accept(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (failed_) return false;
    if (anchor != YAML::NullAnchor) {
      refuse(mark, "an anchor (&name) is not accepted; write the value out where it is used");
    } else if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(mark, "the type tag " + in_quotes(tag) + " is not accepted; write the plain value");
    } else if (++nodes_ > nodes_max) {
      refuse(mark, "more than " + std::to_string(nodes_max) + " values in one file");
    }
    return !failed_;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Node::Kind kind) {
    ++depth_;
    if (!accept(mark, tag, anchor)) return;
    if (depth_ > depth_max) {
      refuse(mark, "nested deeper than " + std::to_string(depth_max) + " levels");
      return;
    }
    if (in_mapping() && !open_.back().pending) {
      refuse(mark, "a list or mapping cannot be a key; write a plain word");
      return;
    }
    open_.push_back({node_at(mark, kind), std::nullopt});
  }

  void close() {
    --depth_;
    if (failed_) return;
    Node node = std::move(open_.back().node);
    open_.pop_back();
    place(std::move(node));
  }

  [[nodiscard]] bool in_mapping() const {
    return !open_.empty() && open_.back().node.kind == Node::Kind::mapping;
  }

  void place(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& level = open_.back();
    if (level.node.kind == Node::Kind::sequence) {
      level.node.items.push_back(std::move(node));
    } else if (!level.pending) {
      start_member(level, std::move(node));
    } else {
      level.pending->value = std::move(node);
      level.node.members.push_back(std::move(*level.pending));
      level.pending.reset();
    }
  }

  void start_member(Open& level, Node key) {
    if (const Node* first = level.node.find(key.text)) {
      // yaml-cpp would keep one of the two without a word.
      const int line = first->line;
      level.pending = Member{key.text, key.line, {}};
      YAML::Mark mark;
      mark.line = key.line - 1;
      refuse(mark,
             "given twice in one mapping, first near line " + std::to_string(line) + "; keep one");
      return;
    }
    level.pending = Member{std::move(key.text), key.line, {}};
  }

  Problems& problems_;
  std::vector<Open> open_;
  Node root_;
  YAML::Mark last_quote_ = YAML::Mark::null_mark();
  std::size_t nodes_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

// A stream over text that is not copied.
class ViewBuffer final : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // the get area is never written
    setg(begin, begin, begin + text.size());
  }
};

void add_syntax_problem(const YAML::Exception& e, std::string_view text, Problems& problems) {
  const int line = e.mark.is_null() ? 0 : e.mark.line + 1;
  std::string_view found = text.substr(line_begin(text, line));
  found = found.substr(0, found.find('\n'));
  std::string message = "not valid YAML: " + e.msg;
  if (found.substr(0, found.find_first_not_of(" \t")).find('\t') != std::string_view::npos) {
    message = "a tab in the indentation; YAML indents with spaces";
  }
  problems.add(line, "", std::move(message));
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const Member& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

std::optional<Node> parse_document(std::string_view text, Problems& problems) {
  if (!check_text(text, problems)) return std::nullopt;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  ViewBuffer buffer(text);
  std::istream stream(&buffer);
  try {
    YAML::Parser parser(stream);
    TreeBuilder builder(problems);
    if (!parser.HandleNextDocument(builder)) {
      problems.add(0, "", "the file is empty; see docs/operators/configuration.md");
      return std::nullopt;
    }
    builder.check_last_quote(text);
    if (builder.failed()) return std::nullopt;
    Node root = builder.take_root();
    TreeBuilder second(problems);
    if (parser.HandleNextDocument(second)) {
      problems.add(0, "", "more than one YAML document (---) in the file; write one file each");
      return std::nullopt;
    }
    return root;
  } catch (const YAML::Exception& e) {
    add_syntax_problem(e, text, problems);
  } catch (const std::exception& e) {
    problems.add(0, "", std::string("not valid YAML: ") + e.what());
  }
  return std::nullopt;
}

}  // namespace neap::config
