import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { commandEntries } from '../../src/cli/command-host.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { operationEntries } from '../../src/core/dispatch.ts';
import { operations } from '../../src/operations.ts';

const program = buildProgram();
const commands = commandEntries(program);

describe('the command line', () => {
  test('reaches every operation but those of protocols for other systems', () => {
    const reached = new Set(commands.flatMap((entry) => entry.operations));
    const known = operationEntries(operations).map(({ id }) => id);
    assert.deepEqual(
      known.filter((id) => !reached.has(id)),
      [
        'traces.receive',
        'a2a.card',
        'a2a.call',
        'mcpServers.oauthCallback',
        'mcpEndpoint.call',
        'mcpEndpoint.resource',
        'openAiModels.list',
        'openAiModels.get',
        'chatCompletions.create',
        'embeddings.create',
        'responses.create',
        'responses.get',
        'responses.remove',
        'responses.cancel',
        'responses.inputItems',
        'conversations.create',
        'conversations.get',
        'conversations.update',
        'conversations.remove',
        'conversations.items',
        'conversations.item',
      ],
    );
    assert.deepEqual(
      [...reached].filter((id) => !known.includes(id)),
      [],
    );
  });

  test('has no two commands of one name, and says what each is for', () => {
    const names = commands.map(({ name }) => name);
    assert.deepEqual(names, [...new Set(names)]);
    for (const { name, command } of commands) assert.ok(command.description().length > 10, name);
  });

  test('says in the past tense what was acted on where an answer has no body', () => {
    for (const { id, operation } of operationEntries(operations)) {
      const [usual] = Object.values(operation.responses);
      if (usual !== null || operation.cli?.handWritten === true) continue;
      const done = operation.cli?.done ?? '';
      assert.match(done, /^[A-Z][a-z]+ed .*\{\w+\}.*\.$/, id);
      for (const [, name = ''] of done.matchAll(/\{(\w+)\}/g)) assert.ok(operation.path.includes(`{${name}}`), id);
    }
  });

  test('has no option that a global one would swallow, since those are read anywhere on the line', () => {
    const globals = new Set(program.options.flatMap(({ long, short }) => [long, short]).filter((flag) => flag != null));
    for (const { name, command } of commands)
      for (const { long, short } of command.options)
        for (const flag of [long, short]) assert.ok(flag == null || !globals.has(flag), `${name} ${flag}`);
  });

  test('has no option that takes a secret', () => {
    for (const { name, command } of commands)
      for (const { long } of [...command.options, ...program.options])
        assert.ok(!/token$|secret(?!-configuration-key$|-file$)|password|api-key$/.test(long ?? ''), `${name} ${long}`);
  });
});
