import { Box, Text, useInput, useWindowSize } from 'ink';
import { createElement as h, memo, type ReactElement, useEffect, useMemo, useSyncExternalStore } from 'react';
import { createStyle, type Style, type StyleName } from '../text/style.ts';
import { readKeys } from './keys/key.ts';
import type { Request } from './state/prompt.ts';
import type { ScreenStore } from './store.ts';
import { frameView } from './view/frame.view.ts';
import type { Line, Tone } from './view/line.ts';

export interface ScreenProps {
  readonly store: ScreenStore;
  /** Off: no escape sequence sets a colour or a weight, and marks alone say what is chosen. */
  readonly color: boolean;
  readonly onRequest: (request: Request) => void;
}

const looks: Readonly<Record<Exclude<Tone, 'plain'>, StyleName>> = {
  strong: 'bold',
  dim: 'dim',
  good: 'green',
  bad: 'red',
  warn: 'yellow',
  accent: 'cyan',
};

/** A row with its escape sequences. The chosen one is inverted as a whole. */
const styledText = ({ spans, selected }: Line, style: Style): string => {
  if (selected) return style.inverse(spans.map(({ text }) => text).join(''));
  return spans.map(({ text, tone }) => (tone === 'plain' ? text : style[looks[tone]](text))).join('');
};

/** One text for each row, drawn anew only when it changed: a row of many parts costs several times as much. */
const Row = memo(({ text }: { readonly text: string }): ReactElement => h(Text, { wrap: 'truncate' }, text));

// Rows stand for places on the screen, so their number is their identity.
const row = (text: string, key: number): ReactElement => h(Row, { key, text });

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
  const style = useMemo(() => createStyle(color), [color]);
  const lines = frameView({ ...state, size: { columns, rows } });
  return h(
    Box,
    { flexDirection: 'column', width: columns, height: rows },
    lines.map((line, index) => row(styledText(line, style), index)),
  );
};
