import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { isRecord } from '../contract/record.ts';
import { type ListedShape, listBranch, mostErrors } from './schema-lengths.ts';

/** By the JSON pointer of a list in the sample, where its elements stand in the value. */
type Places = Map<string, readonly number[]>;

/** A part of a value that has the same errors. */
type Sample = (value: unknown, pointer: string, places: Places) => unknown;

/** The library looks for errors in each element of a list in a way that takes a hundred times as long as its check. */
const shortList = 64;

const sampledList = ({ items }: ListedShape): Sample | null => {
  if (items === undefined) return null;
  const item = sampleOf(items);
  let compiled: { Check(value: unknown): boolean } | undefined;
  const misfits = (list: readonly unknown[]): readonly number[] => {
    compiled ??= Compile(items as TSchema);
    const found: number[] = [];
    for (let at = 0; at < list.length && found.length < mostErrors; at += 1)
      if (!compiled.Check(list[at])) found.push(at);
    return found.length === 0 ? [0] : found;
  };
  return (value, pointer, places) => {
    if (!Array.isArray(value)) return value;
    const list: readonly unknown[] = value;
    const isShort = list.length <= shortList;
    const kept = isShort ? list.map((_, at) => at) : misfits(list);
    if (!isShort) places.set(pointer, kept);
    return kept.map((from, at) => (item === null ? list[from] : item(list[from], `${pointer}/${at}`, places)));
  };
};

const sampledObject = ({ properties = {} }: ListedShape): Sample | null => {
  const members: (readonly [string, Sample])[] = [];
  for (const [name, member] of Object.entries(properties)) {
    const sample = sampleOf(member);
    if (sample !== null) members.push([name, sample]);
  }
  if (members.length === 0) return null;
  return (value, pointer, places) => {
    if (!isRecord(value)) return value;
    const copy: Record<string, unknown> = { ...value };
    for (const [name, sample] of members)
      if (Object.hasOwn(value, name))
        copy[name] = sample(value[name], `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, places);
    return copy;
  };
};

const sampleOf = (schema: ListedShape): Sample | null => {
  if (schema.anyOf !== undefined || schema.oneOf !== undefined) {
    const list = listBranch(schema);
    return list === null ? null : sampledList(list);
  }
  return schema.items === undefined ? sampledObject(schema) : sampledList(schema);
};

/** A part of a value that has the same errors as the whole, and where in the value a pointer into the part leads. */
export const createErrorSamples = (schema: ListedShape) => {
  const sample = sampleOf(schema);
  return (value: unknown): { readonly part: unknown; inValue(pointer: string): string } => {
    const places: Places = new Map();
    const part = sample === null ? value : sample(value, '', places);
    return {
      part,
      inValue(pointer) {
        if (places.size === 0) return pointer;
        let above = '';
        return pointer
          .split('/')
          .map((name) => {
            const from = places.get(above)?.[Number(name)];
            above = name === '' ? above : `${above}/${name}`;
            return from === undefined ? name : String(from);
          })
          .join('/');
      },
    };
  };
};
