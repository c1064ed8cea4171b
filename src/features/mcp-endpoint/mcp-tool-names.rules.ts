import { createHash } from 'node:crypto';

const maxLength = 64;
const keptLength = 55;

/** The name of a tool, from one that may have other characters or be longer than clients take. */
export const mcpToolName = (name: string): string => {
  const plain = name.replace(/[^A-Za-z0-9_-]/g, '_');
  if (plain.length <= maxLength) return plain;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return `${plain.slice(0, keptLength)}_${digest}`;
};
