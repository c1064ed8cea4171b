import type { ModelJson } from '../model-provider.ts';

const placeholder = /\{\{\s*([^{}]*?)\s*\}\}/g;

/** What the placeholders of one reply stand for. */
export interface TemplateValues {
  /** Result of the last tool, as the model sees it; null: no tool has answered. */
  readonly last: ModelJson | null;
  /** Groups of the rule's pattern, by number and name. */
  readonly groups: Readonly<Record<string, string>>;
}

/** Names of the groups that a pattern captures, `0` for the whole match. */
export const groupNames = (pattern: RegExp): string[] => {
  // An empty alternative makes any pattern match, so that its groups can be counted.
  const match = new RegExp(`${pattern.source}|`, pattern.flags.replaceAll(/[gy]/g, '')).exec('');
  return [...(match ?? []).keys()].map(String).concat(Object.keys(match?.groups ?? {}));
};

/** The placeholders of a text that stand for nothing. */
export const unknownPlaceholders = (text: string, groups: readonly string[]): string[] =>
  [...text.matchAll(placeholder)]
    .map((match) => match[1] ?? '')
    .filter((name) => name !== 'last' && !name.startsWith('last.') && !groups.includes(name));

const asText = (value: ModelJson | null | undefined): string => {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
};

const parsed = (value: ModelJson | null): ModelJson | null => {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value) as ModelJson;
  } catch {
    // A tool that answers in prose has no members; `{{last.name}}` is empty then.
    return null;
  }
};

const member = (value: ModelJson | null, path: readonly string[]): ModelJson | null => {
  let current: ModelJson | null | undefined = value;
  for (const name of path)
    current = typeof current === 'object' && current !== null ? (current as Record<string, ModelJson>)[name] : null;
  return current ?? null;
};

/** Fills in `{{last}}`, `{{last.member}}`, `{{1}}` and `{{name}}`. */
export const fillText = (text: string, values: TemplateValues): string =>
  text.replaceAll(placeholder, (_, name: string) => {
    if (name === 'last') return asText(values.last);
    return name.startsWith('last.')
      ? asText(member(parsed(values.last), name.split('.').slice(1)))
      : (values.groups[name] ?? '');
  });

/** The same in every text inside a JSON value. */
export const fillJson = (value: ModelJson, values: TemplateValues): ModelJson => {
  if (typeof value === 'string') return fillText(value, values);
  if (Array.isArray(value)) return value.map((item) => fillJson(item, values));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, fillJson(item ?? null, values)]));
  return value;
};
