import Type, { type Static, type TProperties, type TSchema } from 'typebox';

/** A closed object: an unknown member is an error that names it. */
export const closed = <const P extends TProperties>(properties: P, options: Record<string, unknown> = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options });

/** The schema or null, as one `type` array where possible, so that errors name one expectation. */
export const nullable = <T extends TSchema>(schema: T, options: Record<string, unknown> = {}) => {
  const plain = schema as unknown as Record<string, unknown>;
  const type = plain['type'];
  if (Array.isArray(plain['enum']))
    return Type.Unsafe<Static<T> | null>({ ...plain, enum: [...plain['enum'], null], ...options });
  if (typeof type === 'string') return Type.Unsafe<Static<T> | null>({ ...plain, type: [type, 'null'], ...options });
  return Type.Unsafe<Static<T> | null>({ anyOf: [schema, { type: 'null' }], ...options });
};

/** A closed set of words; clients may send any case, the canonical spelling is used. */
export const oneOf = <const V extends readonly string[]>(values: V, options: Record<string, unknown> = {}) =>
  Type.Unsafe<V[number]>({ enum: values, ...options });

export const Uuid = Type.String({ format: 'uuid', description: 'UUID; ids made by the service are version 7' });
export const Time = Type.String({ format: 'date-time', description: 'RFC 3339, UTC, milliseconds' });
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export const JsonValue = Type.Unsafe<Json>({ description: 'Any JSON value' });
export const Int32 = (options: Record<string, unknown> = {}) =>
  Type.Integer({ minimum: 1, maximum: 2_147_483_647, ...options });

export const namePattern = '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$';
/** What runs have as the name of their agent: that of a definition, or `provider/model`. */
export const runAgentPattern = '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}(?:/.{1,128})?$';
export const sessionIdPattern = '^[A-Za-z0-9._:-]{1,128}$';
export const tenantPattern = '^[A-Za-z0-9._-]{1,64}$';
export const lanePattern = '^[a-z0-9][a-z0-9._-]{0,63}$';
/** The same or nothing. */
export const givenLanePattern = '^(?:[a-z0-9][a-z0-9._-]{0,63})?$';

export const labelPattern = '^[A-Za-z0-9][A-Za-z0-9._/-]{0,63}$';

/** What people note about a record, such as whose it is. The service reads none of it. */
export const Labels = Type.Record(Type.String({ pattern: labelPattern }), Type.String({ maxLength: 256 }), {
  additionalProperties: false,
  maxProperties: 8,
  description: 'Labels such as `owner`, at most 8; the service stores them and does not interpret them',
});

/** skip ≥ 0 and take 1..200; out-of-range values are clamped by the operation, never refused. */
export const pagingQuery = {
  skip: Type.Optional(Type.Integer({ description: 'Rows to skip, default 0; negative values count as 0' })),
  take: Type.Optional(Type.Integer({ description: 'Rows to return, default 50, clamped to 1..200' })),
};

export const clampPaging = (query: {
  readonly skip?: number;
  readonly take?: number;
}): { skip: number; take: number } => ({
  skip: Math.min(Math.max(query.skip ?? 0, 0), Number.MAX_SAFE_INTEGER),
  take: Math.min(Math.max(query.take ?? 50, 1), 200),
});

/** Path parameter of operations on one agent. Any text: a name that no agent can have answers 404 like any other. */
export const AgentName = Type.Object({ name: Type.String() });
