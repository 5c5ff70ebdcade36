import type { ShownPairing } from '../answers.ts';
import { usePage } from '../page.tsx';
import { Facts, Fingerprint, Remaining, type Fact } from '../parts/facts.tsx';

/** What a machine that wants to pair stated, to be compared with what it shows itself. */
export function PairingFacts({ pairing }: { readonly pairing: ShownPairing }) {
  const { say } = usePage();
  const { machineName, rootName, platform, fingerprint } = pairing;
  const facts: (Fact | undefined)[] = [
    machineName === null ? undefined : { name: say('pair.machine-name'), value: machineName },
    rootName === null ? undefined : { name: say('fact.root'), value: <code>{rootName}</code> },
    platform === null
      ? undefined
      : {
          name: say('fact.platform'),
          value: say('machine.platform', { ...platform, system: say(`system.${platform.system}`) }),
        },
    pairing.daemonVersion === null ? undefined : { name: say('fact.daemon'), value: pairing.daemonVersion },
    pairing.sandbox === null
      ? undefined
      : { name: say('overview.sandbox'), value: say(`sandbox.none.${pairing.sandbox.reason}`) },
    { name: say('pair.expires'), value: <Remaining until={pairing.expiresAt} /> },
  ];
  return (
    <>
      <Facts facts={facts.filter((fact) => fact !== undefined)} />
      {fingerprint !== null && (
        <>
          <h3>{say('pair.fingerprint')}</h3>
          <Fingerprint digits={fingerprint} label={say('pair.fingerprint')} />
        </>
      )}
    </>
  );
}
