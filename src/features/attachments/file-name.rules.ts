import { fileExtensions } from '../../core/media-types.ts';

const maxNameLength = 255;

/** The first `length` UTF-16 units of a text, never half a character. */
const cut = (text: string, length: number): string => {
  const splitsPair = /[\ud800-\udbff]/.test(text.charAt(length - 1));
  return text.length <= length ? text : text.slice(0, splitsPair ? length - 1 : length);
};

/** The name that an attachment keeps: the last segment of what the sender called it, fit for a header and a file system. */
export const attachmentName = (original: string | null, mediaType: string): string => {
  const segment = (original ?? '').split(/[/\\]/).at(-1) ?? '';
  const name = cut(segment.toWellFormed().replace(/\p{Cc}/gu, ''), maxNameLength);
  return name.trim() === '' ? `file.${fileExtensions[mediaType] ?? 'bin'}` : name;
};

/**
 * `Content-Disposition` of a download (RFC 6266). Readers take `filename*`; the plain form beside it is for those that
 * do not, and has nothing in it that they read in different ways.
 */
export const attachmentDisposition = (fileName: string): string => {
  const plain = fileName.replace(/[^\x20-\x7e]|["\\%]/gu, '_');
  const encoded = encodeURIComponent(fileName).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
};
