import { Box, Text, type TextProps, useInput, useWindowSize } from 'ink';
import { createElement as h, type ReactElement, useEffect, useSyncExternalStore } from 'react';
import { readKeys } from './keys/key.ts';
import type { Request } from './state/request.ts';
import type { ScreenStore } from './store.ts';
import { frameView } from './view/frame.view.ts';
import type { Line, Tone } from './view/line.ts';

export interface ScreenProps {
  readonly store: ScreenStore;
  /** Off: no escape sequence sets a colour or a weight, and marks alone say what is chosen. */
  readonly color: boolean;
  readonly onRequest: (request: Request) => void;
}

const looks: Readonly<Record<Tone, Omit<TextProps, 'children'>>> = {
  plain: {},
  strong: { bold: true },
  dim: { dimColor: true },
  good: { color: 'green' },
  bad: { color: 'red' },
  warn: { color: 'yellow' },
  accent: { color: 'cyan' },
};

const row = ({ spans, selected }: Line, index: number, color: boolean): ReactElement => {
  const own = { key: index, wrap: 'truncate' } as const;
  // One text without parts is the cheapest to lay out.
  if (!color || selected)
    return h(Text, { ...own, inverse: color && selected }, spans.map(({ text }) => text).join(''));
  return h(
    Text,
    own,
    spans.map(({ text, tone }, part) => h(Text, { key: part, ...looks[tone] }, text)),
  );
};

/** All of the screen: the rows that the state gives, and the keys that change it. */
export const Screen = ({ store, color, onRequest }: ScreenProps): ReactElement => {
  const state = useSyncExternalStore(store.subscribe, store.get);
  const { columns, rows } = useWindowSize();
  useEffect(() => store.dispatch({ type: 'resized', size: { columns, rows } }), [store, columns, rows]);
  useInput((input, key) => {
    for (const pressed of readKeys(input, key)) {
      const request = store.press(pressed);
      if (request !== undefined) onRequest(request);
    }
  });
  const lines = frameView({ ...state, size: { columns, rows } });
  return h(
    Box,
    { flexDirection: 'column', width: columns, height: rows },
    lines.map((line, index) => row(line, index, color)),
  );
};
