import requestThrough from 'undici/lib/api/api-request.js';
import { isRecord } from '../../contract/record.ts';
import { parseForeignJson } from '../../core/documents/foreign-json.ts';
import { readBody } from '../http/outbound.ts';
import type { ModelErrorClass } from './model-error.ts';
import type { ConnectionPool } from './transport/connection-pool.ts';

/** How a provider is asked which models it has. Never a completion: that would cost money. */
export interface ModelListRequest {
  readonly url: string;
  headers(): Promise<Readonly<Record<string, string>>> | Readonly<Record<string, string>>;
  /** Member of the answer that holds the list, and member of an entry that holds its id. */
  readonly list: 'data' | 'models';
  readonly id: 'id' | 'name';
  /** True: servers of this API may lack the route, which then says nothing about their health. */
  readonly optional: boolean;
  /** False: the default model is not one of the listed names, as with deployments. */
  readonly namesDefaultModel: boolean;
}

export type ModelListAnswer =
  | { readonly kind: 'list'; readonly models: readonly string[]; readonly namesDefaultModel: boolean }
  /** There is no such list. */
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly httpStatus: number | null; readonly errorClass: ModelErrorClass };

// The longest lists that vendors send hold some hundred entries of about a kilobyte.
const maxListBytes = 8 * 1024 * 1024;
const maxModels = 200;
/** Answers of servers that do not know the route. */
const noRoute: ReadonlySet<number> = new Set([404, 405, 501]);

const namesIn = (body: unknown, { list, id }: ModelListRequest): readonly string[] | null => {
  const entries = isRecord(body) ? body[list] : null;
  if (!Array.isArray(entries)) return null;
  return entries
    .map((entry: unknown) => (isRecord(entry) ? entry[id] : null))
    .filter((name) => typeof name === 'string')
    .map((name) => name.replace(/^models\//, ''));
};

const classOfStatus = (status: number): ModelErrorClass => (status === 429 ? 'RateLimited' : 'ProviderError');

/** Asks once. Never rejects: what went wrong is the answer. */
export const fetchModelList = async (
  pool: ConnectionPool,
  request: ModelListRequest,
  signal: AbortSignal,
): Promise<ModelListAnswer> => {
  try {
    const url = new URL(request.url);
    const answer = await requestThrough.call(await pool.agent(), {
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: 'GET',
      headers: { accept: 'application/json', ...(await request.headers()) },
      body: null,
      signal,
    });
    const { statusCode: status } = answer;
    if (status < 200 || status > 299) {
      await answer.body.dump({ limit: 16_384 });
      if (request.optional && noRoute.has(status)) return { kind: 'none' };
      return { kind: 'failed', httpStatus: status, errorClass: classOfStatus(status) };
    }
    const models = namesIn(parseForeignJson(await readBody(answer.body, maxListBytes)), request);
    if (models === null)
      return request.optional ? { kind: 'none' } : { kind: 'failed', httpStatus: status, errorClass: 'ProviderError' };
    return { kind: 'list', models, namesDefaultModel: request.namesDefaultModel };
  } catch (error) {
    if (signal.aborted) return { kind: 'failed', httpStatus: null, errorClass: 'Timeout' };
    // An answer that is no JSON came from something that is not the provider.
    const errorClass = error instanceof SyntaxError ? 'ProviderError' : 'ProviderUnavailable';
    return { kind: 'failed', httpStatus: null, errorClass };
  }
};

/** As many ids as an answer shows. */
export const shownModels = (models: readonly string[]): string[] => models.slice(0, maxModels);
