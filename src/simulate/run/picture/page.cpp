#include "simulate/run/picture/page.h"

#include "simulate/run/picture/chart.h"

namespace neap::whatif {

namespace {

constexpr std::string_view style = R"css(
:root { color-scheme: light dark; --ink: #1f2937; --soft: #64748b; --card: #ffffff;
  --page: #f1f5f9; --grid: #e2e8f0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e5e7eb; --soft: #94a3b8; --card: #1e293b;
  --page: #0f172a; --grid: #334155; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--page);
  margin: 0 auto; padding: 24px; max-width: 1040px; }
h1 { font-size: 24px; margin: 0 0 2px; } h2 { font-size: 16px; margin: 0 0 6px; }
p { margin: 0 0 14px; color: var(--soft); }
section { background: var(--card); border-radius: 10px; padding: 16px 20px; margin: 0 0 16px;
  box-shadow: 0 1px 3px rgba(0, 0, 0, .08); }
svg { width: 100%; height: auto; display: block; }
svg text { font-size: 12px; fill: var(--soft); } svg text.on { fill: #fff; font-weight: 600; }
.grid { stroke: var(--grid); stroke-width: 1; }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; } .area { opacity: .85; }
.key span { display: inline-block; margin: 0 16px 6px 0; font-size: 13px; color: var(--soft); }
.key i { display: inline-block; width: 11px; height: 11px; border-radius: 3px;
  margin-right: 6px; vertical-align: -1px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: right; padding: 5px 10px; border-bottom: 1px solid var(--grid);
  white-space: nowrap; }
th { color: var(--soft); font-weight: 500; } th:first-child, td:first-child { text-align: left; }
.good { color: #16a34a; } .bad { color: #dc2626; }
)css";

}  // namespace

std::string page_begin(std::string_view title) {
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  return out + "<title>" + escaped(title) + "</title><style>" + std::string(style) +
         "</style></head><body>\n";
}

std::string key_of(const std::vector<KeyEntry>& entries) {
  std::string out = "<div class=\"key\">";
  for (const auto& [name, colour] : entries) {
    out += "<span><i style=\"background:" + colour + "\"></i>" + escaped(name) + "</span>";
  }
  return out + "</div>\n";
}

std::string section(const std::string& title, const std::string& body) {
  return "<section><h2>" + escaped(title) + "</h2>\n" + body + "</section>\n";
}

}  // namespace neap::whatif
