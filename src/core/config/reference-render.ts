import { configSchema } from './schema.ts';
import { availabilityNote, type ConfigNode, type Group, type Setting } from './schema-nodes.ts';

const header = `# Configuration

Every setting, its type, its default and what it does. This page is generated from the schema that checks the settings; [\`service.example.yaml\`](../../service.example.yaml) shows the same as a file.

## Where settings come from

From the lowest to the highest; the highest that gives a key decides it:

1. the defaults below;
2. one YAML 1.2 file: \`--config <path>\`, else the variable \`ACP_CONFIG\`, else \`service.yaml\` in the working directory;
3. variables: \`Service__Scheduling__PollInterval=2s\`, with two underscores between the levels;
4. flags: \`--set Service:Scheduling:PollInterval=2s\`, and \`--url\` and \`--prefix\` of \`acp serve\`.

Keys ignore case; names that you choose, such as those of providers and lanes, keep theirs. Maps of several sources are joined by name, a list replaces the one below it. In variables and flags a list or a map may be JSON, a list may also come by index (\`Host__Agents__0\`), and empty text stands for null. \`acp config\` prints what is in effect, with the source of each key.

## How values are written

- Durations: \`250ms\`, \`30s\`, \`5m\`, \`1h30m\`, \`2d\`, \`PT30S\` or \`00:00:30\`. A bare number is refused.
- Sizes are whole bytes. Ratios go from 0 to 1. \`true\`, \`false\` and enumerations ignore case.
- Relative paths start at the folder of the file that holds them, else at the working directory.
- In the file a text may hold \`\${env:NAME}\`, \`\${file:path}\` (without its last line end) and \`\${key:Service:…}\`; \`$\${\` stands for a literal \`\${\`.
- Secrets are never shown or logged. In \`ProviderKeys\`, \`WebhookSecrets\`, \`TriggerSecrets\` and \`McpSecrets\` files are read at each use, so a changed secret counts at once; everything else needs a restart.

Every problem is reported before the service opens anything: unknown keys, wrong values, settings that contradict each other. Settings of a feature that is *not in this version* are known, but only their defaults are accepted.
`;

interface Row {
  readonly key: string;
  readonly type: string;
  readonly fallback: string;
  readonly effect: string;
}

/** `docs/reference/configuration.md`. */
export const renderConfigurationReference = (): string => {
  const chapters = Object.entries(configSchema.members).flatMap(([name, root]) => chapter(name, root));
  return `${header}\n${chapters.join('\n\n')}\n`;
};

const chapter = (name: string, root: Group): string[] => {
  const members = Object.entries(root.members);
  const own = members.filter(([, node]) => node.node === 'setting').flatMap(([key, node]) => [...rows(node, [key])]);
  const sections = members
    .filter(([, node]) => node.node !== 'setting')
    .map(
      ([key, node]) =>
        `### ${name}:${key}\n\n${node.doc}${note(node)}\n\n${table([...rows({ ...node, feature: null }, [])])}`,
    );
  return [`## ${name}\n\n${root.doc}\n\n${table(own)}`, ...sections];
};

const table = (lines: readonly Row[]): string => {
  const body = lines.map(({ key, type, fallback, effect }) => `| ${key} | ${type} | ${fallback} | ${effect} |`);
  return ['| Key | Type | Default | Effect |', '|---|---|---|---|', ...body].join('\n');
};

const rows = function* (node: ConfigNode, path: readonly string[]): Generator<Row> {
  switch (node.node) {
    case 'setting':
      yield settingRow(node, path);
      return;
    case 'group':
      yield* groupRows(node, path);
      return;
    case 'section':
      yield blockRow(node, path, 'section', 'absent');
      yield* groupRows(node.group, path);
      return;
    case 'map': {
      const entry = { ...node.entry, feature: node.feature ?? node.entry.feature };
      const key = [...path, node.placeholder];
      if (entry.node === 'group') yield blockRow(entry, key, 'section', 'absent');
      yield* rows(entry, key);
      return;
    }
    case 'list':
      yield blockRow(node, path, 'list of objects', code('[]'));
      yield* groupRows(node.item, [...path, '{index}']);
      return;
    case 'secrets':
      for (const name of ['{name}', '{tenant}:{name}']) {
        const type = `text${node.most === 1 ? '' : ` or list of up to ${node.most}`}, secret`;
        yield { key: code([...path, name].join(':')), type, fallback: '–', effect: node.doc };
      }
      return;
  }
};

const groupRows = function* (group: Group, path: readonly string[]): Generator<Row> {
  for (const [name, node] of Object.entries(group.members)) yield* rows(node, [...path, name]);
  for (const node of Object.values(group.rest)) yield* rows(node, path);
};

const blockRow = (node: ConfigNode, path: readonly string[], type: string, fallback: string): Row => ({
  key: path.length === 0 ? '–' : code(path.join(':')),
  type,
  fallback,
  effect: cell(node.doc + note(node)),
});

const settingRow = (node: Setting<unknown>, path: readonly string[]): Row => {
  const fallback = node.fallback === undefined ? 'required' : code(JSON.stringify(node.kind.show(node.fallback)));
  const type = cell(node.kind.label) + (node.secret ? ', secret' : '');
  return { key: code(path.join(':')), type, fallback, effect: cell(node.doc + note(node)) };
};

const note = (node: ConfigNode): string => {
  const text = availabilityNote(node);
  return text === '' ? '' : ` *${text}*`;
};
const code = (text: string): string => `\`${text}\``;
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
