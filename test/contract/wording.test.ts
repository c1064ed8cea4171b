import assert from 'node:assert/strict';
import type { EventEmitter } from 'node:events';
import { test } from 'node:test';
import type { Command } from 'commander';
import { commandEntries } from '../../src/cli/command-host.ts';
import { groupDescriptions } from '../../src/cli/groups.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { errorTable } from '../../src/contract/errors.ts';
import { operationEntries } from '../../src/core/dispatch.ts';
import { buildOpenApi } from '../../src/http/openapi.ts';
import { operations } from '../../src/operations.ts';
import { wordingFaults } from '../support/wording.ts';

/** Texts that need a construction all the same, each with its reason. */
const exceptions: Readonly<Record<string, string>> = {};

/** Summaries and descriptions of an OpenAPI document. `named`: its keys are names, such as a property called `description`. */
const described = (node: unknown, named = false): string[] => {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([key, value]) =>
    !named && (key === 'summary' || key === 'description') && typeof value === 'string'
      ? [value]
      : described(value, key === 'properties' && !named),
  );
};

/** What the help of a command shows: its description, arguments and options, and the note after them. */
const helpOf = (command: Command): string[] => {
  const notes: string[] = [];
  // A command is an emitter, which its types do not tell.
  (command as Command & EventEmitter).emit('afterHelp', {
    command,
    error: false,
    write: (text: string) => notes.push(text),
  });
  return [
    command.description(),
    ...command.registeredArguments.map(({ description }) => description),
    ...command.options.map(({ description }) => description),
    ...notes,
  ];
};

const check = (texts: Iterable<string>): void => {
  const distinct = new Set([...texts].map((text) => text.trim()));
  const faults = [...distinct].filter((text) => exceptions[text] === undefined).flatMap(wordingFaults);
  assert.deepEqual(faults, []);
};

const document = buildOpenApi(operationEntries(operations), { version: '0.0.0', prefix: '' });
const program = buildProgram();
const publicTexts = {
  operations: described(document),
  errors: Object.values(errorTable).map(({ title }) => title),
  help: [
    ...helpOf(program),
    ...Object.values(groupDescriptions),
    ...commandEntries(program).flatMap(({ command }) => helpOf(command)),
  ],
};

test('summaries and descriptions of the API use plain words', () => {
  assert.ok(publicTexts.operations.length > 1500);
  check(publicTexts.operations);
});

test('titles of errors use plain words', () => {
  check(publicTexts.errors);
});

test('the help of commands uses plain words', () => {
  assert.ok(publicTexts.help.length > 500);
  assert.ok(publicTexts.help.some((text) => text.includes('can be stopped at any time')));
  check(publicTexts.help);
});

test('an exception is a public text that has a fault', () => {
  const texts = new Set(Object.values(publicTexts).flat());
  for (const text of Object.keys(exceptions)) {
    assert.ok(texts.has(text), text);
    assert.notDeepEqual(wordingFaults(text), [], text);
  }
});

test('a private term, a clause as the subject and a pronoun without a noun are found, and names in backticks are not', () => {
  for (const text of [
    'What was used in the current periods',
    'It is gone to as a call would, step by step.',
    'The prompts of a server. One that has no prompts is listed, too.',
    'The answer is the text of all its messages.',
    'A queued run takes the place of the one that waits.',
    'Kept with the stop',
    'Sent to whoever waits',
  ])
    assert.notDeepEqual(wordingFaults(text), [], text);
  for (const text of [
    '`judge-answer-invalid` or `member`',
    'How to fix the problem',
    'One entry per line of JSON Lines',
  ])
    assert.deepEqual(wordingFaults(text), [], text);
});
