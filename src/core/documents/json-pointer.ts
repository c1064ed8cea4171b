import { isRecord } from '../../contract/record.ts';

const form = /^(?:\/(?:[^~/]|~[01])*)*$/;
const index = /^(?:0|[1-9]\d*)$/;

/** Whether a text is a JSON Pointer (RFC 6901). */
export const isJsonPointer = (text: string): boolean => form.test(text);

/** The value that a JSON Pointer leads to; undefined where there is none. */
export const valueAtPointer = (document: unknown, pointer: string): unknown => {
  let value = document;
  for (const token of pointer.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(value)) value = index.test(name) ? value[Number(name)] : undefined;
    else value = isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
};
