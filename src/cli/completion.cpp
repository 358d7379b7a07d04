#include "cli/verbs.h"

namespace neap::cli {

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string verb_names(const std::vector<Verb>& verbs) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs) names.push_back(verb.name);
  return joined(names);
}

std::string bash_text(const std::vector<Verb>& verbs) {
  std::string text =
      "# neap completion bash > /etc/bash_completion.d/neap\n"
      "_neap() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]}\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"" +
      verb_names(verbs) +
      "\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"$verb\" in\n";
  for (const Verb& verb : verbs) {
    std::string words = joined(verb.options);
    if (verb.takes_task) words += " $(neap ps --names 2>/dev/null)";
    text += "    " + verb.name + ") COMPREPLY=($(compgen -W \"" + words + "\"" +
            (verb.takes_file ? " -f" : "") + " -- \"$word\")) ;;\n";
  }
  return text + "  esac\n}\ncomplete -F _neap neap\n";
}

std::string zsh_text(const std::vector<Verb>& verbs) {
  std::string text =
      "#compdef neap\n"
      "# neap completion zsh > \"${fpath[1]}/_neap\"\n"
      "_neap() {\n"
      "  if (( CURRENT == 2 )); then\n"
      "    compadd " +
      verb_names(verbs) +
      "\n"
      "    return\n"
      "  fi\n"
      "  case \"$words[2]\" in\n";
  for (const Verb& verb : verbs) {
    text += "    " + verb.name + ") compadd -- " + joined(verb.options) + ";";
    if (verb.takes_task) text += " compadd -- ${(f)\"$(neap ps --names 2>/dev/null)\"};";
    if (verb.takes_file) text += " _files;";
    text += ";\n";
  }
  return text + "  esac\n}\n_neap \"$@\"\n";
}

std::string fish_text(const std::vector<Verb>& verbs) {
  std::string text =
      "# neap completion fish > ~/.config/fish/completions/neap.fish\n"
      "complete -c neap -n __fish_use_subcommand -f -a \"" +
      verb_names(verbs) + "\"\n";
  for (const Verb& verb : verbs) {
    const std::string here =
        "complete -c neap -n \"__fish_seen_subcommand_from " + verb.name + "\"";
    for (const std::string& option : verb.options) {
      if (option.starts_with("--")) text += here + " -l " + option.substr(2) + "\n";
    }
    if (verb.takes_task) text += here + " -f -a \"(neap ps --names 2>/dev/null)\"\n";
  }
  return text;
}

}  // namespace

int completion(const Context& context, const std::string& shell, const std::vector<Verb>& verbs) {
  if (shell == "bash") context.terminal().write(bash_text(verbs));
  if (shell == "zsh") context.terminal().write(zsh_text(verbs));
  if (shell == "fish") context.terminal().write(fish_text(verbs));
  return 0;
}

}  // namespace neap::cli
