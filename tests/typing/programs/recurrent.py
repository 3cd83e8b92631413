"""Recurrent layers and packed sequences."""

import pullback as torch
from pullback import nn
from pullback.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

lstm = nn.LSTM(3, 5, num_layers=2, batch_first=True, bidirectional=True)
gru = nn.GRU(3, 5)
cell = nn.LSTMCell(3, 5)
x = torch.randn(2, 4, 3)
out, (h, c) = lstm(x)
also, last = gru(x.transpose(0, 1))
hx, cx = cell(x[:, 0])
for t in range(1, 4):
    hx, cx = cell(x[:, t], (hx, cx))
padded = pad_sequence([x[0], x[1, :2]], batch_first=True)
packed = pack_padded_sequence(padded, torch.tensor([4, 2]), batch_first=True)
unpacked, lengths = pad_packed_sequence(lstm(packed)[0], batch_first=True)
print(out.shape, h.shape, c.shape, also.shape, last.shape, hx.shape, unpacked.shape, lengths)
