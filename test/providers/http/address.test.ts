import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPublicAddress } from '../../../src/providers/http/address.ts';
import { checkUrlTarget } from '../../../src/providers/http/egress.ts';

test('EGR-2 every refused IPv4 block is refused from its first to its last address, and its neighbours are not', () => {
  const blocks: [first: string, last: string, before: string | null, after: string | null][] = [
    ['0.0.0.0', '0.255.255.255', null, '1.0.0.0'],
    ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
    ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
    ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
    ['169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
    ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
    ['192.0.0.0', '192.0.0.255', '191.255.255.255', '192.0.1.0'],
    ['192.0.2.0', '192.0.2.255', '192.0.1.255', '192.0.3.0'],
    ['192.88.99.0', '192.88.99.255', '192.88.98.255', '192.88.100.0'],
    ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
    ['198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
    ['198.51.100.0', '198.51.100.255', '198.51.99.255', '198.51.101.0'],
    ['203.0.113.0', '203.0.113.255', '203.0.112.255', '203.0.114.0'],
    ['224.0.0.0', '239.255.255.255', '223.255.255.255', null],
    ['240.0.0.0', '255.255.255.255', null, null],
  ];
  for (const [first, last, before, after] of blocks) {
    assert.equal(isPublicAddress(first), false, first);
    assert.equal(isPublicAddress(last), false, last);
    if (before !== null) assert.equal(isPublicAddress(before), true, before);
    if (after !== null) assert.equal(isPublicAddress(after), true, after);
  }
});

test('EGR-2 the refused IPv6 blocks', () => {
  const refused = [
    '::',
    '::1',
    'fc00::',
    'fdff::1',
    'fe80::1',
    'febf::1',
    'fe80::1%eth0',
    'ff02::1',
    '2001:db8::1',
    '3fff::1',
    '3fff:fff::1',
    '5f00::1',
    '100::1',
    '100::ffff:ffff:ffff:ffff',
    '100:0:0:1::1',
    '2001:1::4',
    '2001:2::1',
    '2001:10::1',
    '2001:20::1',
    '2001:2f:ffff::1',
    '2001:1ff:ffff::1',
    '2002:c058:6301::1',
  ];
  for (const address of [...refused, 'fec0::1', '64:ff9b:1::1']) assert.equal(isPublicAddress(address), false, address);
  for (const address of ['2606:4700::1111', '2a00:1450:4001::1', '2001:4860:4860::8888', 'fbff::1', '100:0:0:2::1'])
    assert.equal(isPublicAddress(address), true, address);
  // Addresses of protocols that the registry lists as globally reachable.
  for (const address of ['2001:1::1', '2001:1::3', '2001:3::1', '2001:4:112::1', '2001:30::1', '2001:200::1'])
    assert.equal(isPublicAddress(address), true, address);
});

test('EGR-2 IPv6 forms are judged by the IPv4 address that they carry', () => {
  const cases: [refused: string, allowed: string][] = [
    ['::ffff:127.0.0.1', '::ffff:8.8.8.8'],
    ['::ffff:a9fe:a9fe', '::ffff:0808:0808'],
    ['::ffff:0:10.1.1.1', '::ffff:0:8.8.8.8'],
    ['::10.0.0.1', '::8.8.8.8'],
    ['64:ff9b::c0a8:101', '64:ff9b::808:808'],
    ['2002:7f00:1::', '2002:808:808::1'],
    // Teredo: server in the second group of four bytes, client inverted in the last.
    ['2001:0:7f00:1::f7f7:f7f7', '2001:0:808:808::f7f7:f7f7'],
    ['2001:0:808:808::80ff:fffe', '2001:0:808:808:0:0:f7f7:f7f7'],
  ];
  for (const [refused, allowed] of cases) {
    assert.equal(isPublicAddress(refused), false, refused);
    assert.equal(isPublicAddress(allowed), true, allowed);
  }
});

test('EGR-2 what is no address is not public', () => {
  for (const text of ['', 'example.com', '8.8.8.8/32', 'x', ':::1']) assert.equal(isPublicAddress(text), false, text);
});

test('EGR-3 a literal in any notation of a URL, and localhost names, are found without a lookup', () => {
  const refused = [
    'http://127.0.0.1',
    'http://127.1',
    'http://2130706433',
    'http://0x7f000001',
    'http://0x7f.1',
    'http://0177.0.0.1',
    'http://017700000001',
    'http://127.0.0.1.',
    'http://１２７．０．０．１',
    'http://%31%32%37.0.0.1',
    'http://0',
    'http://[::1]:8080',
    'http://[::ffff:127.0.0.1]',
    'http://[0:0:0:0:0:ffff:10.1.1.1]',
    'http://169.254.169.254/latest',
    'http://localhost',
    'http://LOCALHOST.',
    'https://api.localhost:8443',
    'http://a.b.localhost..',
  ];
  for (const text of refused) assert.equal(checkUrlTarget(new URL(text)), 'private', text);
  for (const text of ['http://8.8.8.8', 'https://example.com', 'http://[2606:4700::1111]', 'http://notlocalhost'])
    assert.equal(checkUrlTarget(new URL(text)), null, text);
  for (const text of ['file:///etc/passwd', 'ftp://example.com', 'ws://example.com', 'data:,x'])
    assert.equal(checkUrlTarget(new URL(text)), 'scheme', text);
});
