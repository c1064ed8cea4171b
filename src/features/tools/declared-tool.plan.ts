import type { Json } from '../../contract/schema.ts';
import type { FieldPath } from '../../engine/tools/index.ts';
import { isConnectionHeader } from '../../providers/http/connection-headers.ts';
import { declaresArgument, isMembers, type Members, type Report, reportUnknown } from './declared-tool.fields.ts';
import type { RequestPlan } from './declared-tool.request.ts';
import {
  argumentPaths,
  type BodyTemplate,
  documentBody,
  isDocumentTemplate,
  isHeaderValue,
  parseTemplate,
  type ReferenceKind,
  references,
  type Template,
  type TemplateValues,
  textBody,
} from './declared-tool.template.ts';
import { parseUrlTemplate, type UrlTemplate } from './declared-tool.url.ts';

/** What reading one `request` mapping needs; mistakes go to `report`, with paths from the root of the document. */
export interface PlanScope {
  readonly inputSchema: unknown;
  readonly sendsIdempotencyKey: boolean;
  readonly allowPrivate: boolean;
  resolveReference(kind: ReferenceKind, name: string): string | null;
  /** A scalar as it was written: YAML reads 1.10 as 1.1. Null for what is no scalar. */
  scalarText(path: FieldPath): string | null;
  readonly report: Report;
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const fields = ['method', 'url', 'headers', 'query', 'body'];
const bodyless: readonly string[] = ['GET', 'HEAD'];
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const jsonType = /^application\/(?:json|[\w.+-]+\+json)\s*(?:;\s*charset=utf-8\s*)?$/i;

/** The template of a text, with its arguments and references checked. */
const readTemplate = (text: string, path: FieldPath, scope: PlanScope): Template => {
  const { template, problems } = parseTemplate(text);
  for (const message of problems) scope.report(path, message);
  for (const argument of argumentPaths(template))
    if (!declaresArgument(scope.inputSchema, argument))
      scope.report(path, `uses the argument ${argument.join('.')}, which inputSchema does not declare`);
  for (const { kind, name } of references(template))
    if (scope.resolveReference(kind, name) === null)
      scope.report(path, `has the reference \${${kind}:${name}}, which has no value`);
  return template;
};

const readScalar = (path: FieldPath, scope: PlanScope): Template | null => {
  const text = scope.scalarText(path);
  if (text !== null) return readTemplate(text, path, scope);
  scope.report(path, 'must be text; quote a value that starts with {{');
  return null;
};

const readMethod = (request: Members, path: FieldPath, scope: PlanScope): RequestPlan['method'] => {
  const word = request['method'] ?? 'GET';
  const method = methods.find((name) => typeof word === 'string' && name === word.toUpperCase());
  if (method === undefined) scope.report([...path, 'method'], `must be one of ${methods.join(', ')}`);
  return method ?? 'GET';
};

const readUrl = (request: Members, path: FieldPath, scope: PlanScope): UrlTemplate | null => {
  const at = [...path, 'url'];
  if (request['url'] === undefined) {
    scope.report(at, 'is required');
    return null;
  }
  const template = readScalar(at, scope);
  if (template === null || references(template).some(({ kind, name }) => scope.resolveReference(kind, name) === null))
    return null;
  const result = parseUrlTemplate(template, scope.resolveReference, scope.allowPrivate);
  if ('url' in result) return result.url;
  scope.report(at, result.problem);
  return null;
};

type NamedTemplates = (readonly [string, Template])[];

const readMap = (request: Members, field: string, path: FieldPath, scope: PlanScope): NamedTemplates => {
  const value = request[field];
  if (value === undefined || value === null) return [];
  const at = [...path, field];
  if (!isMembers(value)) {
    scope.report(at, 'must be a mapping of names to texts');
    return [];
  }
  return Object.keys(value).flatMap((name) => {
    const template = readScalar([...at, name], scope);
    return template === null ? [] : [[name, template] as const];
  });
};

const headerProblem = (name: string, template: Template, earlier: ReadonlySet<string>): string | null => {
  const lower = name.toLowerCase();
  if (!headerName.test(name)) return 'is no header name';
  if (isConnectionHeader(name) || lower === 'idempotency-key' || lower.startsWith('proxy-'))
    return 'is a header that the service sets itself';
  if (earlier.has(lower)) return 'is given twice; header names ignore case';
  if (template.some((part) => part.kind === 'text' && !isHeaderValue(part.text)))
    return 'must not hold control characters, or characters beyond Latin-1';
  return null;
};

const readHeaders = (request: Members, path: FieldPath, scope: PlanScope): NamedTemplates => {
  const headers: NamedTemplates = [];
  const names = new Set<string>();
  for (const [name, template] of readMap(request, 'headers', path, scope)) {
    const problem = headerProblem(name, template, names);
    if (problem !== null) scope.report([...path, 'headers', name], problem);
    names.add(name.toLowerCase());
    headers.push([name.toLowerCase(), template]);
  }
  return headers;
};

/** A part of a body that is written as YAML. Names of members are literal. */
const readBodyPart = (value: unknown, path: FieldPath, scope: PlanScope): BodyTemplate => {
  if (typeof value === 'string') return textBody(readTemplate(value, path, scope));
  if (Array.isArray(value)) {
    const items = value.map((item: unknown, index) => readBodyPart(item, [...path, index], scope));
    return (values) => items.map((item) => item(values)).filter((item) => item !== undefined);
  }
  if (isMembers(value)) {
    const members = Object.entries(value).map(([name, item]) => {
      if (name.includes('{{')) scope.report([...path, name], 'must not be a placeholder; only values may be');
      return [name, readBodyPart(item, [...path, name], scope)] as const;
    });
    return (values) =>
      Object.fromEntries(
        members.flatMap(([name, item]): [string, Json][] => {
          const part = item(values);
          return part === undefined ? [] : [[name, part]];
        }),
      );
  }
  return () => value as Json;
};

const readBody = (value: unknown, path: FieldPath, scope: PlanScope): ((values: TemplateValues) => string) => {
  if (typeof value !== 'string') {
    const body = readBodyPart(value, path, scope);
    return (values) => JSON.stringify(body(values) ?? null);
  }
  const template = readTemplate(value, path, scope);
  if (!isDocumentTemplate(template))
    scope.report(path, 'must be a mapping, or JSON text in which a placeholder is a whole value without quotes');
  return documentBody(template);
};

/** The request of a declared tool; null when it has no usable shape. Whether it may be used is up to the reports. */
export const readPlan = (request: unknown, path: FieldPath, scope: PlanScope): RequestPlan | null => {
  if (!isMembers(request)) {
    scope.report(path, request === undefined ? 'is required' : 'must be a mapping');
    return null;
  }
  reportUnknown(request, fields, path, scope.report);
  const method = readMethod(request, path, scope);
  const url = readUrl(request, path, scope);
  const query = readMap(request, 'query', path, scope);
  const headers = readHeaders(request, path, scope);
  const bodyPath = [...path, 'body'];
  const body = request['body'] === undefined ? null : readBody(request['body'], bodyPath, scope);
  if (body !== null && bodyless.includes(method)) scope.report(bodyPath, `is not sent with ${method}`);
  const type = headers.find(([name]) => name === 'content-type')?.[1];
  const typeText = type?.map((part) => (part.kind === 'text' ? part.text : '{{')).join('');
  if (body !== null && typeText !== undefined && !jsonType.test(typeText))
    scope.report([...path, 'headers'], 'must leave Content-Type out or give a JSON type: bodies are sent as JSON');
  if (url === null) return null;
  return { method, url, query, headers, body, sendsIdempotencyKey: scope.sendsIdempotencyKey };
};
