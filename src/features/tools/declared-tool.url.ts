import { ToolError } from '../../engine/tools/index.ts';
import { checkUrlTarget } from '../../providers/http/egress.ts';
import {
  type ReferenceKind,
  renderTemplate,
  splitTemplate,
  type Template,
  type TemplatePart,
  type TemplateValues,
} from './declared-tool.template.ts';

/** A URL whose scheme and host are fixed and whose path and query are filled for each call. */
export interface UrlTemplate {
  readonly origin: string;
  /** Pieces between the slashes of the path, the first one empty. */
  readonly segments: readonly Template[];
  /** `name=value` pieces of the query. */
  readonly pairs: readonly Template[];
}

export type UrlTemplateResult = { readonly url: UrlTemplate } | { readonly problem: string };

const originOfUrl = /^([a-z][a-z0-9+.-]*:\/\/[^/?#\\]*)(.*)$/is;

interface UrlHead {
  readonly text: string;
  /** Parts behind it. */
  readonly rest: readonly TemplatePart[];
}

/**
 * Everything up to the part that ends the host, references resolved as they are: a host's own base address may come
 * from its environment. It is read once, at start.
 */
const readHead = (
  template: Template,
  resolve: (kind: ReferenceKind, name: string) => string | null,
): UrlHead | { readonly problem: string } => {
  let text = '';
  for (const [index, part] of template.entries()) {
    if (part.kind === 'argument') return { problem: 'must not have a placeholder in its scheme or host' };
    const piece = part.kind === 'text' ? part.text : resolve(part.reference.kind, part.reference.name);
    if (piece === null) return { problem: 'has a reference without a value' };
    text += piece;
    const [, , path] = originOfUrl.exec(text) ?? [];
    if (path !== undefined && path !== '') return { text, rest: template.slice(index + 1) };
  }
  return { text, rest: [] };
};

const targetProblem = (text: string, allowPrivate: boolean): string | null => {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null) return 'must be an absolute http or https URL';
  const refusal = checkUrlTarget(url);
  if (refusal === 'scheme') return 'must be an absolute http or https URL';
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password; use a header';
  if (refusal === 'private' && !allowPrivate)
    return 'leads to a private address, which Service:Egress:AllowPrivateNetworkTargets does not allow';
  return null;
};

export const parseUrlTemplate = (
  template: Template,
  resolve: (kind: ReferenceKind, name: string) => string | null,
  allowPrivate: boolean,
): UrlTemplateResult => {
  const head = readHead(template, resolve);
  if ('problem' in head) return head;
  const [, base, start = ''] = originOfUrl.exec(head.text) ?? [];
  if (base === undefined) return { problem: 'must be an absolute http or https URL' };
  const problem = targetProblem(base, allowPrivate);
  if (problem !== null) return { problem };
  const rest: Template = [...(start === '' ? [] : [{ kind: 'text', text: start } as const]), ...head.rest];
  if (rest.some((part) => part.kind === 'text' && part.text.includes('#')))
    return { problem: 'must not have a fragment (#…)' };
  const [path = [], query] = splitTemplate(rest, '?', 2);
  return {
    url: {
      origin: new URL(base).origin,
      segments: splitTemplate(path, '/'),
      pairs: query === undefined ? [] : splitTemplate(query, '&').filter((pair) => pair.length > 0),
    },
  };
};

/**
 * A value stays inside its piece of the path: slashes are escaped, and a piece that came out empty, `.` or `..` would
 * lead elsewhere, so it is refused.
 */
const renderSegment = (segment: Template, values: TemplateValues): string => {
  const text = renderTemplate(segment, values, encodeURIComponent);
  if (text === null) throw new ToolError('An argument that the address needs is missing.');
  const filled = segment.some((part) => part.kind !== 'text');
  if (filled && /^\.{0,2}$/.test(text.replace(/%2e/gi, '.')))
    throw new ToolError('An argument in the address must not be empty or a relative path.');
  return text;
};

/** The URL of one call; `query` are further `name=value` pieces, already encoded. Throws ToolError. */
export const renderUrl = (template: UrlTemplate, query: readonly string[], values: TemplateValues): URL => {
  const path = template.segments.map((segment) => renderSegment(segment, values)).join('/');
  const pairs = template.pairs.flatMap((pair) => renderTemplate(pair, values, encodeURIComponent) ?? []);
  const search = [...pairs, ...query].join('&');
  const url = new URL(`${template.origin}${path}${search === '' ? '' : `?${search}`}`);
  // Cannot happen while values are escaped; a request to another host would be worse than a failed call.
  if (url.origin !== template.origin) throw new ToolError('The arguments do not form a valid address.');
  return url;
};
