import { isUtf8 } from 'node:buffer';
import { parse } from 'secure-json-parse';
import { AcpError } from '../../contract/errors.ts';
import { isJson, overflows } from './json-depth.ts';
import { jsonShapeProblem, sizedLimits } from './json-shape.ts';

/** Deeper than any definition or message, shallow enough that no recursive walk over a body is a risk. */
export const maxBodyDepth = 64;
/** Rows of a table have as many as one row has members. A name that no other object has costs ten times what one of a row costs. */
const maxBodyShapes = 10_000;

const strictlyParsed = (text: string): unknown => {
  try {
    return parse(text, { protoAction: 'error', constructorAction: 'error' });
  } catch {
    // Valid JSON that the strict parser refuses has a forbidden member name.
    if (isJson(text.replace(/^\uFEFF/, '')))
      throw new AcpError('validation-failed', 'The body has a member named __proto__ or constructor.prototype.');
    throw new AcpError('malformed-json', 'The body is not valid JSON.');
  }
};

/** Parses a value of a body whose depth and size are known to be bounded: finite numbers, no property that could reach a prototype. */
export const parsedPart = (text: string): unknown => {
  const value = strictlyParsed(text);
  if (overflows(text, value)) throw new AcpError('validation-failed', 'The body has a number that is too large.');
  return value;
};

/** Parses a JSON body strictly: UTF-8 only, bounded depth and number of values, finite numbers, no property that could reach a prototype. */
export const parseJsonBody = (bytes: Uint8Array): unknown => {
  if (!isUtf8(bytes)) throw new AcpError('malformed-json', 'The body is not valid UTF-8.');
  const problem = jsonShapeProblem(bytes, {
    ...sizedLimits(bytes.byteLength),
    maxDepth: maxBodyDepth,
    maxShapes: maxBodyShapes,
  });
  if (problem !== null) throw new AcpError('validation-failed', `The body ${problem}.`);
  return parsedPart(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
};

const jsonType = /^application\/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i;

export const requirePlain = (contentEncoding: string | undefined): void => {
  if (contentEncoding !== undefined && !/^identity$/i.test(contentEncoding))
    throw new AcpError('unsupported-media-type', 'The body must not be compressed.');
};

export const requireJsonType = (contentType: string | undefined): void => {
  if (contentType === undefined || !jsonType.test(contentType))
    throw new AcpError('unsupported-media-type', 'The body must be application/json.');
};
