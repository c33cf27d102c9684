<?php
/* PHP's SOAP extension, which reads the contract of a server and calls it, or serves the cellar itself.

     php soap.php bench|cellar ADDRESS [12]     a client of SOAP 1.1 or 1.2, which reads ADDRESS?wsdl; prints `ok` at the end
     CONTRACT=cellar.wsdl NOTES=FILE php -S 127.0.0.1:0 soap.php     a service, which says on standard error where it is
 */
ini_set('soap.wsdl_cache_enabled', '0');
ini_set('precision', '17');

const TYPES = 'http://schemas.datacontract.org/2004/07/Everywire.Cellar';

function same($got, $wanted, $what)
{
    [$got, $wanted] = [var_export($got, true), var_export($wanted, true)];
    if ($got !== $wanted) {
        throw new Exception("$what: wanted " . substr($wanted, 0, 1000) . ', got ' . substr($got, 0, 1000));
    }
}

/** The detail of the fault with which a call ends. */
function fault($call)
{
    try {
        $call();
    } catch (SoapFault $fault) {
        return [$fault->getMessage(), (array) ($fault->detail ?? null)];
    }
    throw new Exception('no fault');
}

/** Calls of the contract with which objects are compared. */
function bench(SoapClient $client)
{
    foreach ([0, 1, 100, 65536, 1 << 20] as $size) {
        $data = $client->GetBytes(['numBytes' => $size])->GetBytesResult ?? '';
        same([strlen($data), md5($data)], [$size, md5(pattern($size))], "GetBytes.$size");
        same($client->PutBytes(['data' => $data])->PutBytesResult, $size, "PutBytes.$size");
    }
    $client->VoidCall();
    $client->InInt(['x' => 42]);
    same($client->OutInt()->x, 42, 'OutInt');
    same($client->InOutInt(['x' => 41])->x, 42, 'InOutInt');
    same($client->InOutString(['s' => 'Grüße <&> €'])->s, 'Grüße <&> €', 'InOutString');
}

function pattern($size)
{
    return substr(str_repeat(implode('', array_map('chr', range(0, 255))), intdiv($size, 256) + 1), 0, $size);
}

/** Each type of the cellar, its faults, its headers and its oneway call. */
function cellar(SoapClient $client)
{
    foreach (
        ['Boolean' => true, 'Byte' => 200, 'SByte' => -100, 'Int16' => -30000, 'UInt16' => 60000, 'Int32' => -2000000000,
            'UInt32' => 4000000000, 'Int64' => -9000000000000000000, 'Single' => 1.5, 'Double' => -0.1,
            'Decimal' => '123456789012345.6700', 'String' => "Grüße <&> \"'\n\t€ 😀 ]]>", 'DateTime' => '2020-01-02T03:04:05Z',
            'TimeSpan' => 'P1DT2H3M4.5S', 'Guid' => '00112233-4455-6677-8899-aabbccddeeff', 'Uri' => 'http://example.test/a?b=c&d',
            'Bytes' => "\x00\x01\x02\x7f\x80\xfe\xff", 'Grape' => 'Pinot-Noir'] as $type => $value
    ) {
        same($client->{"Echo$type"}(['v' => $value])->{"Echo{$type}Result"}, $value, $type);
    }
    $labels = [['Text' => 'one', 'Year' => 1901], ['Text' => '', 'Year' => 0]];
    foreach (
        ['Ints' => ['int' => [1, -2, 70000, 0, -2147483648, 2147483647]], 'Grapes' => ['Grape' => ['Syrah', 'Pinot-Noir', 'Riesling']],
            'Labels' => ['Label' => $labels], 'Shelf' => ['Seldom' => 0, 'third' => 'three', 'B' => 2, 'A' => 1],
            'Stock' => ['KeyValueOfstringint' => [['Key' => 'red', 'Value' => 3], ['Key' => 'white', 'Value' => -4]]]] as $type => $value
    ) {
        $got = json_decode(json_encode($client->{"Echo$type"}(['v' => $value])->{"Echo{$type}Result"}), true);
        ksort($got);
        ksort($value);
        same($got, $value, $type);
    }
    $wine = new SoapVar(['Name' => 'Brut', 'Bar' => 6.25, 'House' => 'R.'], SOAP_ENC_OBJECT, 'Champagne', TYPES);
    same($client->EchoWine(['v' => $wine])->EchoWineResult->House, 'R.', 'Wine');
    same($client->EchoMaybeInt(['v' => null])->EchoMaybeIntResult, null, 'MaybeInt');
    same($client->Split(['v' => 7, 'text' => 'ab'])->text, 'abab', 'Split');
    $client->Note(['text' => 'one-way']);
    same($client->Notes()->NotesResult->string, 'one-way', 'Notes');
    same($client->Take(['kind' => 0])->TakeResult, 17, 'Take');
    [, $detail] = fault(fn () => $client->Take(['kind' => 1]));
    same((array) $detail['OutOfStock'], ['Left' => '2', 'Name' => 'Brut'], 'Take.1');
    [$message] = fault(fn () => $client->Take(['kind' => 3]));
    same($message, 'closed today', 'Take.3');
}

/** The service. What it is asked to echo comes back as it came. */
class Cellar
{
    public function __call($name, $arguments)
    {
        return [$name . 'Result' => $arguments[0]->v ?? null];
    }

    /** All of them are the first one, which is written once, and then referred to. */
    public function EchoLabels($asked)
    {
        $labels = $asked->v->Label;
        return ['EchoLabelsResult' => ['Label' => array_fill(0, count($labels), $labels[0])]];
    }

    public function Buy($order)
    {
        return ['Total' => sprintf('%.2f', $order->Count * 12.5)];
    }

    public function Note($note)
    {
        file_put_contents(getenv('NOTES'), $note->text);
    }

    public function Notes()
    {
        $note = @file_get_contents(getenv('NOTES'));
        // Each is told once: the next client waits for its own.
        @unlink(getenv('NOTES'));
        return ['NotesResult' => ['string' => $note === false ? [] : [$note]]];
    }

    public function Nothing()
    {
        return [];
    }

    public function Split($asked)
    {
        $half = intdiv($asked->v, 2);
        return ['SplitResult' => $asked->v - $half, 'half' => $half, 'text' => str_repeat($asked->text, 2)];
    }

    public function Ring($asked)
    {
        return ['RingResult' => implode(' ', array_fill(0, $asked->times, 'ding'))];
    }

    public function Take($asked)
    {
        match ($asked->kind) {
            0 => null,
            1 => throw new SoapFault('Server', 'none left', null, ['Left' => 2, 'Name' => 'Brut'], 'OutOfStockFault'),
            2 => throw new SoapFault('Server', 'broken', null, ['Why' => 'dropped'], 'BrokenFault'),
            3 => throw new SoapFault('Server', 'closed today'),
            default => throw new Exception('the roof leaks'),
        };
        return ['TakeResult' => 17];
    }
}

if (PHP_SAPI === 'cli-server') {
    $version = str_contains($_SERVER['CONTENT_TYPE'] ?? '', 'soap+xml') ? SOAP_1_2 : SOAP_1_1;
    $server = new SoapServer(getenv('CONTRACT'), ['soap_version' => $version]);
    $server->setClass(Cellar::class);
    $server->handle();
} else {
    [, $service, $address] = $argv;
    $version = ($argv[3] ?? '11') === '12' ? SOAP_1_2 : SOAP_1_1;
    $service(new SoapClient("$address?wsdl", ['soap_version' => $version, 'location' => $address]));
    echo "ok\n";
}
