import type { HostileCall } from './schema-bodies.ts';

const boundary = 'xyz';
const end = `\r\n--${boundary}--\r\n`;

const form = (name: string, make: (bytes: number) => string): HostileCall => ({
  body: { name, make },
  headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
});

const filled = (part: string, bytes: number): string => part.repeat(Math.max(1, Math.floor(bytes / part.length)));
const field = (name: string, value: string): string =>
  `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;

/** Forms of very many tiny parts, long headers, and contents that look like what ends them. */
export const hostileForms = (part: string): readonly HostileCall[] => {
  const opened = `--${boundary}\r\nContent-Disposition: form-data; name="${part}"; filename="`;
  const head = `${opened}a.txt"\r\n\r\n`;
  return [
    form('tiny fields', (bytes) => filled(field('a', ''), bytes) + end),
    form('tiny files', (bytes) => filled(`${head}\r\n`, bytes) + end),
    form('one long field', (bytes) => field('a', filled('a', bytes)) + head + end),
    form('a long file name', (bytes) => `${opened}${filled('a', bytes)}"\r\n\r\n${end}`),
    form('a file name of escapes', (bytes) => `${opened}${filled('%41\\"', bytes)}"\r\n\r\n${end}`),
    form('many headers', (bytes) => `--${boundary}\r\n${filled('a: b\r\n', bytes)}\r\n${end}`),
    form('bare boundaries', (bytes) => filled(`--${boundary}\r\n`, bytes)),
    form('a file of line ends', (bytes) => head + filled('\r\n', bytes) + end),
    form('a file of beginnings of its boundary', (bytes) => head + filled(`\r\n--${boundary.slice(1)}`, bytes) + end),
    form('a file of dashes', (bytes) => head + filled('\r\n-', bytes) + end),
    form('a file without an end', (bytes) => head + filled('a', bytes)),
    form('a preamble', (bytes) => filled('-', bytes)),
  ];
};
