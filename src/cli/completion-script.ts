import type { Command, Option } from 'commander';

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];
export const isShell = (text: string): text is Shell => shells.some((shell) => shell === text);

/** A place in the command line: the words so far, and what may follow. */
interface Place {
  /** Empty for the program itself, else `agents` or `agents apply`. */
  readonly path: string;
  readonly commands: readonly Command[];
  readonly options: readonly Option[];
}

const placesOf = (command: Command, path: string): Place[] => [
  { path, commands: command.commands, options: command.options },
  ...command.commands.flatMap((child) => placesOf(child, path === '' ? child.name() : `${path} ${child.name()}`)),
];

const flags = (option: Option): string[] => [option.long, option.short].filter((flag) => typeof flag === 'string');

const wordsOf = ({ commands, options }: Place, globals: readonly Option[]): string[] => [
  ...commands.map((command) => command.name()),
  ...options.flatMap(flags),
  ...globals.flatMap((option) => option.long ?? []),
];

const unique = (words: readonly string[]): string[] => [...new Set(words)];

/** Options that take a value: the word behind them is no command. */
const valueFlags = (places: readonly Place[]): string[] =>
  unique(places.flatMap(({ options }) => options.filter((option) => option.required).flatMap(flags)));

const callNames = { bash: ['COMP_WORDS[at]', 'COMP_CWORD'], zsh: ['words[at+1]', 'CURRENT - 1'] } as const;

/** The loop over the words so far, which keeps those that lead to a place; the same in bash and zsh but for two names. */
const walk = (places: readonly Place[], shell: keyof typeof callNames): string[] => {
  const [word, count] = callNames[shell];
  const paths = places.flatMap(({ path }) => (path === '' ? [] : [`'${path}'`]));
  return [
    "  local place='' word skip=0 at",
    `  for ((at = 1; at < ${count}; at++)); do`,
    `    word="\${${word}}"`,
    '    if ((skip)); then skip=0; continue; fi',
    '    case "$word" in',
    `      ${valueFlags(places).join('|')}) skip=1 ;;`,
    '      -*) ;;',
    '      *) [[ -n $place ]] && word="$place $word"',
    `         case "$word" in ${paths.join('|')}) place="$word" ;; esac ;;`,
    '    esac',
    '  done',
  ];
};

const wordCases = (
  places: readonly Place[],
  globals: readonly Option[],
  assign: (words: string) => string,
): string[] => [
  '  case "$place" in',
  ...places.map((place) => `    '${place.path}') ${assign(unique(wordsOf(place, globals)).join(' '))} ;;`),
  '  esac',
];

const bash = (places: readonly Place[], globals: readonly Option[]): string[] => [
  '# bash completion for acp',
  '_acp() {',
  '  local current="$2" words=""',
  ...walk(places, 'bash'),
  ...wordCases(places, globals, (words) => `words="${words}"`),
  '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
  '}',
  'complete -o default -F _acp acp',
];

const zsh = (places: readonly Place[], globals: readonly Option[]): string[] => [
  '#compdef acp',
  '_acp() {',
  '  local -a candidates',
  ...walk(places, 'zsh'),
  ...wordCases(places, globals, (words) => `candidates=(${words})`),
  '  compadd -a candidates || _files',
  '}',
  // Run as a completion function of its own file at the first use, sourced otherwise.
  `if [[ "\${funcstack[1]}" == _acp ]]; then _acp "$@"; else compdef _acp acp; fi`,
];

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

const fish = (places: readonly Place[], globals: readonly Option[]): string[] => {
  const condition = ({ path, commands }: Place): string => {
    if (path === '') return '__fish_use_subcommand';
    const words = path.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`);
    const deeper = commands.map((command) => command.name()).join(' ');
    return [...words, ...(deeper === '' ? [] : [`not __fish_seen_subcommand_from ${deeper}`])].join('; and ');
  };
  const option = (when: string, { long, short, description, required }: Option): string =>
    [
      `complete -c acp${when}`,
      long === undefined ? '' : ` -l ${long.replace(/^--/, '')}`,
      short === undefined ? '' : ` -s ${short.replace(/^-/, '')}`,
      required ? ' -r' : '',
      ` -d ${quoted(description)}`,
    ].join('');
  return [
    '# fish completion for acp',
    ...globals.map((entry) => option('', entry)),
    ...places.flatMap((place) => {
      const when = ` -n ${quoted(condition(place))}`;
      return [
        ...place.commands.map(
          (command) => `complete -c acp -f${when} -a ${command.name()} -d ${quoted(command.description())}`,
        ),
        ...(place.path === '' ? [] : place.options.map((entry) => option(when, entry))),
      ];
    }),
  ];
};

/** A script that completes commands and options of this version, without starting the program. */
export const completionScript = (program: Command, shell: Shell): string => {
  const places = placesOf(program, '');
  const write = { bash, zsh, fish }[shell];
  return `${write(places, program.options).join('\n')}\n`;
};
