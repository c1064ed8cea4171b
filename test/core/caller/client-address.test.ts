import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientAddressReader } from '../../../src/core/caller/client-address.ts';

const from = (peerAddress: string, forwarded?: string) => ({
  peerAddress,
  header: (name: string) => (name === 'x-forwarded-for' ? forwarded : undefined),
});

test('SEC-9 without trusted proxies the peer is the client, in one notation', () => {
  const clientAddress = clientAddressReader([]);
  assert.equal(clientAddress(from('10.0.0.7', '203.0.113.9')), '10.0.0.7');
  assert.equal(clientAddress(from('::ffff:10.0.0.7')), '10.0.0.7');
  assert.equal(clientAddress(from('FE80::1%eth0')), 'fe80::1');
  assert.equal(clientAddress(from('')), '');
});

test('SEC-9 a trusted proxy names the client: the rightmost entry that no trusted proxy has', () => {
  const clientAddress = clientAddressReader(['10.0.0.0/8', '127.0.0.1', 'fd00::/8']);
  const cases: [peer: string, header: string | undefined, client: string][] = [
    ['127.0.0.1', '203.0.113.9', '203.0.113.9'],
    ['::ffff:10.1.1.1', '203.0.113.9', '203.0.113.9'],
    ['fd00::5', '2001:DB8::1', '2001:db8::1'],
    // Whoever calls may begin the list with anything; only what trusted proxies appended counts.
    ['10.0.0.1', '1.1.1.1, 203.0.113.9', '203.0.113.9'],
    ['10.0.0.1', '1.1.1.1, 203.0.113.9, 10.0.0.2,127.0.0.1', '203.0.113.9'],
    ['10.0.0.1', '203.0.113.9:4711', '203.0.113.9'],
    ['10.0.0.1', '[2001:db8::1]:4711, 10.0.0.2', '2001:db8::1'],
    ['10.0.0.1', '::ffff:203.0.113.9', '203.0.113.9'],
    // All of it trusted: the farthest one known.
    ['10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['10.0.0.1', '', '10.0.0.1'],
    ['10.0.0.1', '203.0.113.9, unknown', '10.0.0.1'],
    ['10.0.0.1', '203.0.113.9, unknown, 10.0.0.2', '10.0.0.2'],
    ['10.0.0.1', '203.0.113.999', '10.0.0.1'],
    ['192.168.1.1', '203.0.113.9', '192.168.1.1'],
    ['11.0.0.1', '203.0.113.9', '11.0.0.1'],
    ['', '203.0.113.9', ''],
  ];
  for (const [peer, header, client] of cases)
    assert.equal(clientAddress(from(peer, header)), client, `${peer} with ${header}`);
});
