// A thin wrapper around SQLite: ownership, and errors as values. Nothing of sqlite3.h leaks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/model/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace neap::journal {

using Bytes = std::span<const std::byte>;

inline Bytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

template <class T>
[[nodiscard]] tl::unexpected<Error> pass_on(T& result) {
  return tl::unexpected(std::move(result.error()));
}

// A prepared statement. Parameters count from 1, columns from 0. Blobs and text are bound
// without a copy: they must live until the statement is reset or bound anew.
class Statement {
 public:
  void bind(int index, std::int64_t value);
  void bind(int index, Bytes blob);
  void bind_text(int index, std::string_view text);

  // True: a row is ready. False: the statement has run to its end (and is reset).
  [[nodiscard]] Result<bool> step();
  // Runs a statement that gives no rows.
  [[nodiscard]] Result<void> run();
  void reset();

  [[nodiscard]] std::int64_t column_int(int index) const;
  // Valid until the next step or reset.
  [[nodiscard]] Bytes column_blob(int index) const;
  [[nodiscard]] std::string column_text(int index) const;
  [[nodiscard]] bool column_is_null(int index) const;

 private:
  friend class Connection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

enum class Access : std::uint8_t { read_only, read_write };

class Connection {
 public:
  // `vfs` names a registered VFS; empty means SQLite's own. The file must exist.
  [[nodiscard]] static Result<Connection> open(const std::string& path, Access access,
                                               const std::string& vfs = {});

  // Runs one or more statements whose rows, if any, do not matter.
  [[nodiscard]] Result<void> execute(const char* sql);
  // A statement kept for a long time; prepared with that in mind.
  [[nodiscard]] Result<Statement> prepare(std::string_view sql);
  // The first column of the first row, 0 when there is none.
  [[nodiscard]] Result<std::int64_t> query_int(std::string_view sql);

  [[nodiscard]] const std::string& path() const { return path_; }
  // Rows changed by the last statement.
  [[nodiscard]] std::int64_t changes() const;

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  Connection(sqlite3* connection, std::string path)
      : connection_(connection), path_(std::move(path)) {}

  std::unique_ptr<sqlite3, Close> connection_;
  std::string path_;
};

}  // namespace neap::journal
