export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];
export const isShell = (text: string): text is Shell => shells.some((shell) => shell === text);

/** The word after `acp` with which the scripts ask; everything behind the `--` that follows it is a word of the line. */
export const completionWord = '__complete';

/** The answer of one line that leaves the word to the shell's own completion of files. */
export const filesAnswer = ':files';

// bash breaks words at `=` and `:` as well. What stood without a space between is put together again, and what the
// shell keeps of such a word is cut off the answers.
const bash = `# bash completion for acp
_acp() {
  local self="$1" current="$2" line="\${COMP_LINE:0:COMP_POINT}" word prefix at count=0
  local -a words=()
  for ((at = 0; at <= COMP_CWORD; at++)); do
    word="\${COMP_WORDS[at]}"
    if ((at == 0)) || [[ "$line" == [[:space:]]* ]]; then
      line="\${line#"\${line%%[![:space:]]*}"}"
      words[count++]=''
    fi
    [[ "$line" == "$word"* ]] || word="$line"
    words[count-1]+="$word"
    line="\${line#"$word"}"
  done
  prefix="\${words[count-1]%"$current"}"
  [[ "$self" == '~/'* ]] && self="$HOME/\${self#??}"
  COMPREPLY=()
  while IFS=$'\\t' read -r word at; do
    if [[ "$word" == ${filesAnswer} ]]; then
      compopt -o default 2>/dev/null
    else
      COMPREPLY+=("\${word#"$prefix"}")
    fi
  done < <("$self" ${completionWord} -- "\${words[@]:1}" 2>/dev/null </dev/null)
}
complete -F _acp acp
`;

const zsh = `#compdef acp
_acp() {
  local self="\${words[1]}" line answer
  local -a before values shown
  before=("\${(@Q)words[1,CURRENT-1]}")
  [[ "$self" == '~/'* ]] && self="$HOME/\${self#??}"
  answer="$("$self" ${completionWord} -- "\${(@)before[2,-1]}" "\${(Q)PREFIX}" 2>/dev/null </dev/null)"
  for line in "\${(@f)answer}"; do
    if [[ "$line" == ${filesAnswer} ]]; then
      [[ "$PREFIX" == --*=* ]] && compset -P '*='
      _files
      return
    fi
    [[ -n "$line" ]] || continue
    values+=("\${line%%$'\\t'*}")
    shown+=("\${line/$'\\t'/  -- }")
  done
  if [[ "$answer" == *$'\\t'* ]]; then compadd -l -d shown -a values; else compadd -a values; fi
}
# Run as a completion function of its own file at the first use, sourced otherwise.
if [[ "\${funcstack[1]}" == _acp ]]; then _acp "$@"; else compdef _acp acp; fi
`;

const fish = `# fish completion for acp
function __acp_complete
    set -l words (commandline -opc)
    set -l self $words[1]
    set -e words[1]
    set -l current (commandline -ct)
    command -q $self; or return
    set -l answers (command $self ${completionWord} -- $words "$current" 2>/dev/null </dev/null)
    if test "$answers[1]" = ${filesAnswer}
        set -l option (string match -r -- '^--[^=]*=' "$current")
        for path in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' "$current"))
            printf '%s%s\\n' "$option" $path
        end
    else
        set -q answers[1]; and printf '%s\\n' $answers
    end
end
complete -c acp -f -k -a '(__acp_complete)'
`;

/** A script that asks this program what may follow the words of a line. */
export const completionScript = (shell: Shell): string => ({ bash, zsh, fish })[shell];
