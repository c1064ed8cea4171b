import { isUtf8 } from 'node:buffer';
import { parse } from 'secure-json-parse';
import { AcpError } from '../../contract/errors.ts';
import { isJson } from './json-depth.ts';

/** Deeper than any definition or message, shallow enough that no recursive walk over a body is a risk. */
const maxDepth = 64;
const quote = 0x22;
const backslash = 0x5c;

/** True when brackets outside strings nest deeper than allowed. Bytes suffice: UTF-8 never hides an ASCII byte. */
const nestsTooDeep = (bytes: Uint8Array): boolean => {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (inString) {
      if (byte === backslash) at += 1;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth > maxDepth) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
  }
  return false;
};

/** Parses a JSON body strictly: UTF-8 only, bounded depth, no member that could reach a prototype. */
export const parseJsonBody = (bytes: Uint8Array): unknown => {
  if (!isUtf8(bytes)) throw new AcpError('malformed-json', 'The body is not valid UTF-8.');
  if (nestsTooDeep(bytes)) throw new AcpError('validation-failed', `The body nests deeper than ${maxDepth} levels.`);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  try {
    return parse(text, { protoAction: 'error', constructorAction: 'error' });
  } catch {
    // Valid JSON that the strict parser refuses has a forbidden member name.
    if (isJson(text.replace(/^\uFEFF/, '')))
      throw new AcpError('validation-failed', 'The body has a member named __proto__ or constructor.prototype.');
    throw new AcpError('malformed-json', 'The body is not valid JSON.');
  }
};

const jsonType = /^application\/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i;

export const requireJsonType = (contentType: string | undefined): void => {
  if (contentType === undefined || !jsonType.test(contentType))
    throw new AcpError('unsupported-media-type', 'The body must be application/json.');
};
