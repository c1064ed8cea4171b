import { readFileSync } from 'node:fs';

/** A block of a page that a shell or a file takes. */
export interface PageBlock {
  /** Counts the `sh` blocks of the page from 1; null: a file that later blocks read. */
  readonly number: number | null;
  readonly text: string;
  /** Name of the file, which the first line of the block tells as a comment, such as `// receiver.mjs`. */
  readonly file: string | null;
}

/** What a page leaves to its reader. */
export interface PagePlan {
  /** Runs before the first block: what the page presupposes, such as a service and an agent. */
  readonly before?: string;
  /** Blocks that cannot run here, by number, with the reason. */
  readonly skipped?: Readonly<Record<number, string>>;
  /** Runs before a block, by number, such as a file that the reader has. */
  readonly beforeBlock?: Readonly<Record<number, string>>;
  /** Stand-ins for what the page leaves open, such as `<run-id>`. */
  readonly standIns?: Readonly<Record<string, string>>;
  /** Lines with values that the reader fills in, or that end with an exit code on purpose; each begins so. */
  readonly mayFail?: readonly string[];
}

const fence = /^```(\w*)\n([\s\S]*?)^```$/gm;
const fileComment = /^(?:\/\/|#) ([\w./-]+\.(?:mjs|js|ya?ml|json))(?::.*)?\n/;

export const blocksOf = (page: string): PageBlock[] => {
  let number = 0;
  return [...readFileSync(page, 'utf8').matchAll(fence)].flatMap(([, language = '', text = '']): PageBlock[] => {
    if (language === 'sh') {
      number += 1;
      return [{ number, text, file: null }];
    }
    const file = fileComment.exec(text)?.[1];
    return file === undefined ? [] : [{ number: null, text, file }];
  });
};

/** Commands that serve or follow until Ctrl-C, in a terminal of their own. */
const untilStopped = /^(?:acp (?:runs tail|jobs watch|webhooks listen .*|webhooks listen|quickstart|tui))\s*(?:#.*)?$/;
const servesInFront = /^((?:.* && )?acp serve(?: --\S+ \S+)*)\s*(?:#.*)?$/;

/** A line as a script runs it: what serves goes to the background and is waited for, what follows is stopped after a while. */
const scriptLine = (line: string, plan: PagePlan): string => {
  const [, serving] = servesInFront.exec(line) ?? [];
  if (serving !== undefined) return `${serving} & acp wait`;
  if (untilStopped.test(line)) return `timeout -s INT 3 ${line.replace(/\s#.*$/, '')} || true`;
  const mayFail = plan.mayFail?.some((start) => line.startsWith(start)) ?? false;
  return mayFail ? `${line.replace(/\s#.*$/, '')} || true` : line;
};

/** The script of a page: its blocks in their order, each announced, with the ports of this run in place of the usual ones. */
export const pageScript = (
  blocks: readonly PageBlock[],
  plan: PagePlan,
  ports: ReadonlyMap<string, string>,
): string => {
  const withPorts = (text: string): string =>
    [...ports].reduce(
      (all, [port, own]) =>
        all.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${own}`).replaceAll(`listen(${port}`, `listen(${own}`),
      text,
    );
  const withStandIns = (text: string): string =>
    Object.entries(plan.standIns ?? {}).reduce((all, [word, standIn]) => all.replaceAll(word, standIn), text);
  // A page may show a file below the commands that read it.
  const files = blocks.flatMap(({ text, file }) =>
    file === null ? [] : [`mkdir -p "$(dirname ${file})"\ncat > ${file} <<'PAGE_END'\n${withPorts(text)}PAGE_END`],
  );
  const parts = blocks.flatMap(({ number, text }) => {
    if (number === null || plan.skipped?.[number] !== undefined) return [];
    const lines = withStandIns(withPorts(text))
      .replaceAll(/\\\n\s*/g, ' ')
      .split('\n')
      .map((line) => scriptLine(line, plan));
    return [`echo "=== block ${number}"`, plan.beforeBlock?.[number] ?? '', ...lines];
  });
  return [plan.before ?? '', ...files, ...parts].join('\n');
};
