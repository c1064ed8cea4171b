import { appendFileSync } from 'node:fs';
import process from 'node:process';
import { isFelt, type Measured, measuredText } from './standstill.ts';

const only = new RegExp(process.env['ACP_HOSTILE_ONLY'] ?? '');

/** `ACP_HOSTILE_ONLY='^traces'`: these operations or answers alone. */
export const isChosen = (what: string): boolean => only.test(what);

/** The shape, without the place where it stands. */
const shapeOf = (name: string): string => name.split('.').at(-1)?.split(' {', 1)[0] ?? '';

/** Of each shape the one at the first place: the places of a body share what reads them. */
export const firstOfShape = <T>(all: readonly T[], nameOf: (one: T) => string): readonly T[] => {
  const first = new Map<string, T>();
  for (const one of all) {
    const shape = shapeOf(nameOf(one));
    if (!first.has(shape)) first.set(shape, one);
  }
  return [...first.values()];
};

/** What was the worst of each kind of reader when limits were missing. */
const worstShapes =
  /^(full elements|valid elements|unknown properties|empty objects|objects with names of their own|rows|tiny|bare|protobuf|NULs)/;

/** Each of the worst shapes once. */
export const firstOfWorst = <T>(all: readonly T[], nameOf: (one: T) => string): readonly T[] =>
  firstOfShape(all, nameOf).filter((one) => worstShapes.test(shapeOf(nameOf(one)).replace(/^text of /, '')));

const reportFile = process.env['ACP_HOSTILE_REPORT'];

/** Adds a line to the report from which `npm run test:hostile` tells the worst. */
export const report = (what: string, size: number, measured: Measured, status?: number): void => {
  if (reportFile !== undefined)
    appendFileSync(
      reportFile,
      `${JSON.stringify({ what, size, status, ...measured, ...isFelt(measured), text: measuredText(measured) })}\n`,
    );
};
