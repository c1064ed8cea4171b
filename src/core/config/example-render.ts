// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the references of a configuration file look like this
import { configSchema } from './schema.ts';
import { availabilityNote, type ConfigNode, type Group, type Setting } from './schema-nodes.ts';
import type { Shown } from './value-kind.ts';

const header = `# Settings of the agent control plane, every one with its default.
#
# Copy this file to service.yaml, keep what you change and delete the rest. It is read from the working directory, or
# from where --config or the variable ACP_CONFIG says. Variables and flags come before it:
#   Service__Scheduling__PollInterval=2s        acp serve --set Service:Scheduling:PollInterval=2s
#
# Texts may hold \${env:NAME}, \${file:path} and \${key:Service:…}; $\${ stands for a literal \${.
# Durations: 250ms, 30s, 5m, 1h30m, 2d, PT30S or 00:00:30. Sizes: whole bytes. Relative paths start at this folder.
# "acp config" prints what is in effect and where it comes from.
#
# This file is generated; a test compares it with the schema that checks your settings.
`;

/** `service.example.yaml`: loading it as it stands gives the defaults. */
export const renderExampleYaml = (): string => `${header}\n${groupLines(configSchema).join('\n')}\n`;

const secretLines = ['{name}: ${file:/run/secrets/name}', '{tenant}:', '  {name}: ${env:NAME}'];

const indented = (lines: readonly string[]): string[] => lines.map((line) => (line === '' ? '' : `  ${line}`));
const commented = (lines: readonly string[]): string[] =>
  lines.filter((line) => line !== '').map((line) => `# ${line}`);

const groupLines = (group: Group): string[] => {
  const lines: string[] = [];
  let isAfterBlock = false;
  for (const [name, node] of Object.entries(group.members)) {
    const isBlock = node.node !== 'setting';
    lines.push(...(lines.length > 0 && (isBlock || isAfterBlock) ? [''] : []), ...memberLines(name, node));
    isAfterBlock = isBlock;
  }
  // Names that are free to choose have no defaults, so they are shown as comments.
  return [
    ...lines,
    ...Object.values(group.rest).flatMap((node) => ['', `# ${node.doc}`, ...commented(bodyLines(node))]),
  ];
};

const memberLines = (name: string, node: ConfigNode): string[] => {
  if (node.node === 'setting') return settingLines(name, node);
  const doc = `# ${node.doc}${featureNote(node)}`;
  switch (node.node) {
    case 'group':
      return [doc, `${name}:`, ...indented(groupLines(node))];
    case 'section':
    case 'list':
      return [doc, ...commented([`${name}:`, ...indented(bodyLines(node))])];
    case 'map':
    case 'secrets':
      return [doc, `${name}:`, ...indented(commented(bodyLines(node)))];
  }
};

/** What stands below the name of a node. */
const bodyLines = (node: ConfigNode): string[] => {
  switch (node.node) {
    case 'setting':
      return [];
    case 'group':
      return groupLines(node);
    case 'section':
      return groupLines(node.group);
    case 'map':
      return node.entry.node === 'setting'
        ? settingLines(node.placeholder, node.entry)
        : [`${node.placeholder}:`, ...indented(bodyLines(node.entry))];
    case 'list':
      return ['-', ...indented(groupLines(node.item))];
    case 'secrets':
      return secretLines;
  }
};

const featureNote = (node: ConfigNode): string => {
  const note = availabilityNote(node);
  return note === '' ? '' : ` ${note}`;
};

const settingLines = (name: string, node: Setting<unknown>): string[] => {
  const kind = node.kind.label + (node.secret ? ', secret' : '');
  const value = node.fallback === undefined ? '# required' : yamlValue(node.kind.show(node.fallback));
  return [`# ${node.doc} (${kind})${featureNote(node)}`, `${name}: ${value}`];
};

/** Words and numbers that YAML would not read as text. */
const notText = /^(true|false|null|~|[-+.\d][\d_.e+-]*)$/i;

const yamlValue = (value: Shown): string => {
  if (typeof value === 'string') {
    const isPlain = /^[A-Za-z0-9./][A-Za-z0-9_./:@*+-]*$/.test(value) && !value.endsWith(':') && !notText.test(value);
    return isPlain ? value : JSON.stringify(value);
  }
  return Array.isArray(value) ? `[${value.map(yamlValue).join(', ')}]` : String(value);
};
