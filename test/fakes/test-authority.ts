import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** PEM of a certificate and its key. */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority of one test run, made by the openssl program. */
export interface TestAuthority {
  /** PEM of the authority itself. */
  readonly authority: string;
  /** A certificate for names like `DNS:localhost,IP:127.0.0.1`, valid from and to days from now, over a key of P-256 or of RSA. */
  issue(names: string, fromDays?: number, toDays?: number, kind?: 'ec' | 'rsa'): TestCertificate;
  /** A certificate that nobody else signed. */
  issueSelfSigned(names: string): TestCertificate;
}

const stamp = (days: number): string =>
  `${new Date(Date.now() + days * 86_400_000).toISOString().replace(/[-:T]|\.\d+Z/g, '')}Z`;

/** Makes an authority, or undefined where there is no openssl program. */
export function makeTestAuthority(): TestAuthority | undefined {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'authority-'));
  const openssl = (...input: string[]): void => void execFileSync('openssl', input, { cwd: folder, stdio: 'pipe' });
  const read = (name: string): string => fs.readFileSync(path.join(folder, name), 'utf8');
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  try {
    openssl(
      'req',
      '-x509',
      ...curve,
      '-keyout',
      'ca.key',
      '-out',
      'ca.pem',
      '-subj',
      '/CN=test authority',
      '-days',
      '30',
    );
  } catch (error) {
    fs.rmSync(folder, { recursive: true });
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  fs.writeFileSync(path.join(folder, 'index'), '');
  let serial = 0;
  return {
    authority: read('ca.pem'),
    issue: (names, fromDays = -1, toDays = 10, kind = 'ec') => {
      serial += 1;
      const name = `leaf-${serial}`;
      fs.writeFileSync(path.join(folder, `${name}.ext`), `subjectAltName=${names}\n`);
      fs.writeFileSync(
        path.join(folder, `${name}.conf`),
        `[ca]\ndefault_ca=own\n[own]\ndatabase=index\nserial=${name}.serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=any\nunique_subject=no\n[any]\ncommonName=supplied\n`,
      );
      fs.writeFileSync(path.join(folder, `${name}.serial`), `${String(serial).padStart(4, '0')}\n`);
      const made = kind === 'ec' ? curve : ['-newkey', 'rsa:2048', '-nodes'];
      openssl('req', '-new', ...made, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
      const signing = ['-cert', 'ca.pem', '-keyfile', 'ca.key', '-extfile', `${name}.ext`];
      const files = ['-config', `${name}.conf`, '-in', `${name}.csr`, '-out', `${name}.pem`];
      openssl(
        'ca',
        '-batch',
        '-notext',
        ...files,
        ...signing,
        '-startdate',
        stamp(fromDays),
        '-enddate',
        stamp(toDays),
      );
      return { cert: read(`${name}.pem`), key: read(`${name}.key`) };
    },
    issueSelfSigned: (names) => {
      const own = [
        '-keyout',
        'self.key',
        '-out',
        'self.pem',
        '-subj',
        '/CN=self',
        '-addext',
        `subjectAltName=${names}`,
      ];
      openssl('req', '-x509', ...curve, ...own);
      return { cert: read('self.pem'), key: read('self.key') };
    },
  };
}
