import type { Json } from '../../contract/schema.ts';
import { ForeignJsonError, parseForeignJson } from '../../core/documents/foreign-json.ts';
import { headersIn } from '../../core/telemetry/trace-context.ts';
import { type ToolContext, ToolError } from '../../engine/tools/index.ts';
import type { OutboundHttp, OutboundRequest, OutboundResponse } from '../../providers/http/outbound.ts';
import { OutboundError } from '../../providers/http/outbound-error.ts';
import {
  argumentAt,
  isHeaderValue,
  type ReferenceKind,
  renderTemplate,
  secretReader,
  type Template,
  type TemplateValues,
  valueText,
} from './declared-tool.template.ts';
import { renderUrl, type UrlTemplate } from './declared-tool.url.ts';

/** The request of a declared tool, read and checked. */
export interface RequestPlan {
  readonly method: OutboundRequest['method'];
  readonly url: UrlTemplate;
  readonly query: readonly (readonly [name: string, value: Template])[];
  /** Names in lower case. */
  readonly headers: readonly (readonly [name: string, value: Template])[];
  /** Writes the JSON text of the body; null: none. */
  readonly body: ((values: TemplateValues) => string) | null;
  /** True for Write, Destructive and External effects. */
  readonly sendsIdempotencyKey: boolean;
}

export interface RequestDeps {
  readonly http: OutboundHttp;
  /** The value of a reference now; null when it has none. */
  resolveReference(kind: ReferenceKind, name: string): string | null;
}

const maxResponseBytes = 1_048_576;
/** Shorter values are too likely to stand in an answer by chance; masking them would garble it. */
const minMaskedLength = 8;

/** A list gives one pair for each element when its placeholder is the whole value. */
const queryPairs = (name: string, template: Template, values: TemplateValues): string[] => {
  const [only] = template;
  const list = template.length === 1 && only?.kind === 'argument' ? argumentAt(values.args, only.path) : undefined;
  const texts = Array.isArray(list)
    ? (list as readonly Json[]).map(valueText)
    : [renderTemplate(template, values)].filter((text) => text !== null);
  return texts.map((text) => `${encodeURIComponent(name)}=${encodeURIComponent(text)}`);
};

const renderHeaders = (plan: RequestPlan, values: TemplateValues, context: ToolContext): Record<string, string> => {
  const headers: Record<string, string> = { accept: 'application/json, text/*;q=0.9', 'user-agent': 'acp' };
  if (plan.body !== null) headers['content-type'] = 'application/json';
  for (const [name, template] of plan.headers) {
    const text = renderTemplate(template, values);
    if (text === null) continue;
    if (!isHeaderValue(text)) throw new ToolError(`The header ${name} holds characters that cannot be sent.`);
    headers[name] = text;
  }
  if (plan.sendsIdempotencyKey) headers['idempotency-key'] = context.idempotencyKey;
  return headers;
};

const mask = (text: string, secrets: ReadonlySet<string>): string => {
  let masked = text;
  for (const secret of secrets) {
    if (secret.length < minMaskedLength) continue;
    masked = masked.replaceAll(secret, '***').replaceAll(JSON.stringify(secret).slice(1, -1), '***');
  }
  return masked;
};

const jsonType = /^application\/(?:json|[\w.+-]+\+json)$/;
const textType = /^(?:text\/[\w.+-]+|application\/(?:xml|yaml|[\w.+-]+\+(?:xml|yaml)))$/;

const decode = (body: Uint8Array, charset: string): string => {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(body);
  } catch (cause) {
    throw new ToolError('The answer is not text of the encoding that it names.', { cause });
  }
};

/** A number of 16 digits may be beyond what a double holds; reading and writing it again would change an id. */
const hasLongNumber = (text: string): boolean => /\d{16}/.test(text);

const readJson = (text: string): Json => {
  let value: Json;
  try {
    value = parseForeignJson(text) as Json;
  } catch (cause) {
    if (cause instanceof ForeignJsonError) throw new ToolError(`The answer was not read: ${cause.message}`, { cause });
    throw new ToolError('The answer is not valid JSON.', { cause });
  }
  return typeof value === 'object' && value !== null && hasLongNumber(text) ? text : value;
};

const readAnswer = (response: OutboundResponse, secrets: ReadonlySet<string>): Json => {
  if (response.status < 200 || response.status > 299)
    throw new ToolError(`The service answered with HTTP ${response.status}.`);
  if (response.body.byteLength === 0) return null;
  const encoding = response.headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') throw new ToolError('The answer is compressed, which was not asked for.');
  const [type = '', ...parameters] = (response.headers['content-type'] ?? '').toLowerCase().split(';');
  if (jsonType.test(type.trim())) return readJson(mask(decode(response.body, 'utf-8'), secrets));
  if (!textType.test(type.trim())) throw new ToolError('The answer is neither JSON nor text.');
  const charset = parameters.map((parameter) => /^\s*charset="?([^"]+)"?\s*$/.exec(parameter)?.[1]).find(Boolean);
  return mask(decode(response.body, charset ?? 'utf-8'), secrets);
};

/** The body of a declared tool: fills the request, sends it once and reads the answer. Throws ToolError only. */
export const callDeclaredTool = async (
  plan: RequestPlan,
  args: Json,
  context: ToolContext,
  deps: RequestDeps,
): Promise<Json> => {
  const secrets = secretReader(deps.resolveReference);
  const values: TemplateValues = { args, secret: secrets.secret };
  const query = plan.query.flatMap(([name, template]) => queryPairs(name, template, values));
  const url = renderUrl(plan.url, query, values);
  const headers = renderHeaders(plan, values, context);
  const body = plan.body?.(values);
  let response: OutboundResponse;
  try {
    response = await deps.http.request({
      method: plan.method,
      url,
      headers: 'traceparent' in headers ? headers : { ...headers, ...headersIn(context) },
      ...(body === undefined ? {} : { body }),
      signal: context.signal,
      maxBodyBytes: maxResponseBytes,
      readErrorBody: false,
    });
  } catch (error) {
    if (error instanceof OutboundError) throw new ToolError(error.message, { cause: error });
    throw error;
  }
  return readAnswer(response, secrets.used);
};
