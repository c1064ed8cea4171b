import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { completionScript } from '../../src/cli/completion-script.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { createFolder } from './support.ts';

const program = buildProgram();

/** What bash offers for a line whose last word is being typed. */
const completed = (line: readonly string[]): string[] => {
  const words = line.map((word) => `'${word}'`).join(' ');
  const script = [
    completionScript(program, 'bash'),
    `COMP_WORDS=(${words}); COMP_CWORD=${line.length - 1}`,
    `_acp acp "\${COMP_WORDS[COMP_CWORD]}"`,
    `printf '%s\\n' "\${COMPREPLY[@]}"`,
  ].join('\n');
  // A bash whose input is a socket takes itself for a remote one and reads the machine's bashrc.
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-u', '-c', script], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  assert.deepEqual({ stderr, status }, { stderr: '', status: 0 });
  return stdout.split('\n').filter((word) => word !== '');
};

describe('completion', () => {
  test('bash is offered commands, their commands and their options', () => {
    assert.deepEqual(completed(['acp', 'qui']), ['quickstart']);
    assert.deepEqual(completed(['acp', 'agents', 'ap']), ['apply']);
    assert.deepEqual(completed(['acp', 'agents', 'apply', '--dr']), ['--dry-run']);
    assert.deepEqual(completed(['acp', '--url', 'runs', 'runs', 'ta']), ['tail']);
    assert.deepEqual(completed(['acp', 'runs', 'list', '--json', '--stat']), ['--status']);
    assert.ok(completed(['acp', '']).includes('serve'));
  });

  test('every shell that is installed takes its script', (t) => {
    for (const shell of ['bash', 'zsh', 'fish'] as const) {
      const script = completionScript(program, shell);
      for (const command of program.commands) assert.ok(script.includes(command.name()));
      const { error, status, stderr } = spawnSync(shell, ['-n'], { input: script, encoding: 'utf8' });
      if (error === undefined) assert.equal(status, 0, stderr);
      else t.diagnostic(`${shell} is not installed here; its script was only made`);
    }
  });

  test('another shell is told what there is', async (t) => {
    const { code, stderr } = await createFolder(t).acp(['completion', 'tcsh']);
    assert.deepEqual([code, stderr], [2, 'error: There is completion for bash, zsh, fish, not for "tcsh".\n']);
  });
});
