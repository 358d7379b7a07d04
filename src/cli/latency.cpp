#include "cli/latency.h"

#include <array>
#include <cstdio>

#include "cli/format.h"
#include "cli/verbs.h"

namespace neap::cli {
namespace {

std::string ms_at(const Value& row, const char* member) {
  const std::int64_t us = row.number_at(member, -1);
  return us < 0 ? "-" : fixed(static_cast<double>(us) / 1000, 1);
}

std::string thousandths(std::int64_t value) {
  return value < 0 ? "unknown" : fixed(static_cast<double>(value) / 1000, 1);
}

std::string burn_text(const Value& burn) {
  return length_text(burn.number_at("long_us")) + " " +
         thousandths(burn.number_at("long_milli", -1)) + ", " +
         length_text(burn.number_at("short_us")) + " " +
         thousandths(burn.number_at("short_milli", -1)) + ", alarm from " +
         thousandths(burn.number_at("limit_milli"));
}

void print_burns(Terminal& terminal, const Value& report) {
  for (const Value& burn : report.list_at("burn")) {
    const bool alarm = burn.true_at("alarm");
    terminal.line("burn, " + burn.text_at("name") + ": " + burn_text(burn) +
                  (alarm ? terminal.painted("  ALARM", Colour::bad) : ""));
  }
}

void print_engine(Terminal& terminal, const Value& engine) {
  if (engine.number_at("asked") == 0) return;
  std::string text = "engines: " + std::to_string(engine.number_at("replicas")) + " of " +
                     std::to_string(engine.number_at("asked")) + " tell";
  const auto add = [&](const char* member, const std::string& words) {
    if (engine.number_at(member, -1) >= 0) text += ", " + words;
  };
  add("running", std::to_string(engine.number_at("running")) + " running");
  add("waiting", std::to_string(engine.number_at("waiting")) + " waiting");
  add("kv_use_ppm", "KV cache " + part_text(engine.number_at("kv_use_ppm")) + " full");
  add("generated_tokens_milli_per_s",
      thousandths(engine.number_at("generated_tokens_milli_per_s")) + " tokens/s");
  add("inter_token_p50_us", "between tokens p50 " + ms_at(engine, "inter_token_p50_us") +
                                " ms, p95 " + ms_at(engine, "inter_token_p95_us") + " ms, p99 " +
                                ms_at(engine, "inter_token_p99_us") + " ms");
  terminal.line(text);
}

void add_window(Table& table, const std::string& name, const Value& window) {
  const std::int64_t requests = window.number_at("requests");
  if (requests == 0) return;
  const Value& first = window.at("first_byte");
  table.add({{harmless(name)},
             {length_text(window.number_at("length_us"))},
             {std::to_string(requests)},
             {std::to_string(window.number_at("failed"))},
             {std::to_string(window.number_at("shed"))},
             {ms_at(window.at("queued"), "p95_us")},
             {ms_at(first, "p50_us")},
             {ms_at(first, "p95_us")},
             {ms_at(first, "p99_us")},
             {ms_at(window.at("total"), "p50_us")},
             {ms_at(window.at("total"), "p99_us")}});
}

}  // namespace

void print_latency_summary(Terminal& terminal, const Value& report) {
  for (const Value& series : report.list_at("series")) {
    if (series.text_at("dimension") != "service") continue;
    for (const Value& window : series.list_at("windows")) {
      if (window.number_at("length_us") != 300'000'000 || window.number_at("requests") == 0) {
        continue;
      }
      const Value& first = window.at("first_byte");
      terminal.line("requests, last 5 min        " + std::to_string(window.number_at("requests")) +
                    ", " + std::to_string(window.number_at("failed")) + " failed, " +
                    std::to_string(window.number_at("shed")) + " shed; first byte p50 " +
                    ms_at(first, "p50_us") + " ms, p99 " + ms_at(first, "p99_us") + " ms");
    }
  }
  for (const Value& burn : report.list_at("burn")) {
    if (!burn.true_at("alarm")) continue;
    terminal.line(terminal.painted("SLO burns                   ", Colour::bad) +
                  burn.text_at("name") + ": " + burn_text(burn));
  }
  print_engine(terminal, report.at("engine"));
}

int latency(const Context& context, const LatencyOptions& options) {
  std::string body;
  const auto report = context.get("/v1/services/" + part(options.service) + "/latency", &body);
  if (!report) return context.failed(report.error());
  Terminal& terminal = context.terminal();
  if (options.json) {
    terminal.line(body);
    return 0;
  }
  const std::int64_t slo = report->number_at("slo_first_byte_us", -1);
  terminal.line("objective: " + part_text(report->number_at("objective_ppm")) +
                " of requests answered well" +
                (slo > 0 ? ", first byte within " + length_text(slo) : ""));
  print_burns(terminal, *report);
  print_engine(terminal, report->at("engine"));
  Table table({"", "LAST", "REQUESTS", "FAILED", "SHED", "QUEUED P95", "FIRST P50", "P95", "P99",
               "TOTAL P50", "P99 (MS)"});
  for (const Value& series : report->list_at("series")) {
    const std::string& name = series.text_at("name");
    for (const Value& window : series.list_at("windows")) {
      add_window(table, series.text_at("dimension") + (name.empty() ? "" : " " + name), window);
    }
  }
  terminal.line("");
  if (table.empty()) {
    terminal.line("no requests in the last hour");
  } else {
    table.print(terminal);
  }
  return 0;
}

}  // namespace neap::cli
